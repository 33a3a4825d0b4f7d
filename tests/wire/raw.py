"""A client of bytes and packets, for what real drivers never do."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from mysql_mimic.types import Capabilities as CAN

PLAIN = int(
    CAN.CLIENT_PROTOCOL_41 | CAN.CLIENT_SECURE_CONNECTION | CAN.CLIENT_PLUGIN_AUTH | CAN.CLIENT_TRANSACTIONS | CAN.CLIENT_MULTI_STATEMENTS
)
DEPRECATE_EOF = PLAIN | int(CAN.CLIENT_DEPRECATE_EOF)


@dataclass
class ServerError(Exception):
    code: int
    sqlstate: str
    message: str


class RawClient:
    def __init__(self, port: int, capabilities: int = PLAIN, login: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.capabilities = capabilities
        self._stream = self.socket.makefile("rb", buffering=1 << 16)
        self.sequence = 0
        self.greeting = self.read()
        if login:
            self.log_in()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self.socket.close()

    def log_in(self, user: bytes = b"root") -> None:
        """As somebody without a password, whatever the account's plugin is."""
        self.send_packet(handshake_response(self.capabilities, user))
        answer = self.read()
        if answer[0] == 0xFE:
            self.send_packet(b"")
            answer = self.read()
        assert answer[0] == 0, answer

    def read_bytes(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def read(self) -> bytes:
        payload = b""
        while True:
            header = self.read_bytes(4)
            length = int.from_bytes(header[:3], "little")
            self.sequence = (header[3] + 1) & 0xFF
            payload += self.read_bytes(length)
            if length < 0xFFFFFF:
                return payload

    def read_ok(self) -> bytes:
        payload = self.read()
        if payload[:1] == b"\xff":
            raise error_of(payload)
        return payload

    def send_packet(self, payload: bytes, sequence: int | None = None) -> None:
        self.socket.sendall(framed(payload, self.sequence if sequence is None else sequence))

    def command(self, number: int, body: bytes = b"") -> None:
        self.send_packet(bytes((number,)) + body, 0)

    def query(self, sql: str | bytes) -> list[bytes]:
        """The row packets of a query's one result."""
        self.command(3, sql.encode() if isinstance(sql, str) else sql)
        return self.read_result()

    def read_result(self) -> list[bytes]:
        first = self.read_ok()
        if first[0] == 0:
            return []
        for _ in range(first[0]):
            self.read()
        if not self.capabilities & CAN.CLIENT_DEPRECATE_EOF:
            assert self.read()[0] == 0xFE
        return self.read_rows()

    def read_rows(self) -> list[bytes]:
        rows = []
        while True:
            packet = self.read_ok()
            if packet[0] == 0xFE and len(packet) < 0xFFFFFF:
                self.end = packet
                return rows
            rows.append(packet)

    @property
    def end_status(self) -> int:
        if self.capabilities & CAN.CLIENT_DEPRECATE_EOF:
            return int(struct.unpack("<H", self.end[3:5])[0])
        return int(struct.unpack("<H", self.end[3:5])[0])


def error_of(payload: bytes) -> ServerError:
    code = struct.unpack("<H", payload[1:3])[0]
    return ServerError(code, payload[4:9].decode(), payload[9:].decode())


def framed(payload: bytes, sequence: int) -> bytes:
    out = b""
    while True:
        piece, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
        out += len(piece).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + piece
        sequence += 1
        if len(piece) < 0xFFFFFF:
            return out


def handshake_response(
    capabilities: int, user: bytes = b"root", answer: bytes = b"", plugin: bytes = b"mysql_native_password"
) -> bytes:
    head = struct.pack("<IIB23x", capabilities, 1 << 24, 255)
    return head + user + b"\0" + bytes((len(answer),)) + answer + plugin + b"\0"
