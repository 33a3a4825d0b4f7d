"""Payloads of the protocol: bounded parsers of what clients send, builders of what we answer.

Every parser raises `MalformedPacket` where the payload ends early or makes no sense; none
loops or allocates beyond the payload's size, so any bytes may be given to them. Numbers,
flags and the greeting come from mysql-mimic; its parsers are not used because they trust
the client (an unterminated name never ends, an unknown collation raises).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from mysql_mimic import types as mimic
from mysql_mimic.types import Capabilities, ServerStatus

from dataflow.errors import MillraceError

CAN = Capabilities
STATUS = ServerStatus

# As plain numbers, for every command: arithmetic with flags of an enum costs a microsecond each.
DEPRECATE_EOF = int(CAN.CLIENT_DEPRECATE_EOF)
FOUND_ROWS = int(CAN.CLIENT_FOUND_ROWS)
QUERY_ATTRIBUTES = int(CAN.CLIENT_QUERY_ATTRIBUTES)
AUTOCOMMIT = int(STATUS.SERVER_STATUS_AUTOCOMMIT)
IN_TRANSACTION = int(STATUS.SERVER_STATUS_IN_TRANS)
IN_READ_ONLY_TRANSACTION = int(STATUS.SERVER_STATUS_IN_TRANS | STATUS.SERVER_STATUS_IN_TRANS_READONLY)
MORE_RESULTS = int(STATUS.SERVER_MORE_RESULTS_EXISTS)
NO_BACKSLASH_ESCAPES = int(STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES)
CURSOR_EXISTS = int(STATUS.SERVER_STATUS_CURSOR_EXISTS)
LAST_ROW_SENT = int(STATUS.SERVER_STATUS_LAST_ROW_SENT)


class MalformedPacket(Exception):
    """The client does not speak the protocol."""


class PayloadReader:
    """A cursor over one payload."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def rest(self) -> bytes:
        start, self.position = self.position, len(self.data)
        return self.data[start:]

    def fixed(self, length: int) -> bytes:
        stop = self.position + length
        if stop > len(self.data):
            raise MalformedPacket("payload ends early")
        piece = self.data[self.position : stop]
        self.position = stop
        return piece

    def uint(self, length: int) -> int:
        return int.from_bytes(self.fixed(length), "little")

    def terminated(self) -> bytes:
        """Up to the next zero byte; clients may leave out the one that ends the payload."""
        stop = self.data.find(b"\0", self.position)
        if stop < 0:
            return self.rest()
        piece = self.data[self.position : stop]
        self.position = stop + 1
        return piece

    def length(self) -> int:
        first = self.uint(1)
        if first < 0xFB:
            return first
        if first == 0xFC:
            return self.uint(2)
        if first == 0xFD:
            return self.uint(3)
        if first == 0xFE:
            return self.uint(8)
        raise MalformedPacket("not a length")

    def counted(self) -> bytes:
        return self.fixed(self.length())

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.data)


@dataclass(frozen=True, slots=True)
class HandshakeResponse:
    """What the client says of itself. Names are bytes: their character set is `collation`'s."""

    capabilities: int
    packet_bytes_max: int
    collation: int
    user: bytes
    authentication: bytes
    database: bytes | None = None
    plugin: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TlsRequest:
    capabilities: int


@dataclass(frozen=True, slots=True)
class ChangeUser:
    user: bytes
    authentication: bytes
    database: bytes
    collation: int | None
    plugin: str | None


def parse_handshake_response(payload: bytes, offered: int) -> HandshakeResponse | TlsRequest:
    reader = PayloadReader(payload)
    capabilities = reader.uint(4) & offered
    if not capabilities & CAN.CLIENT_PROTOCOL_41:
        raise MalformedPacket("client is older than 4.1")
    packet_bytes_max = reader.uint(4)
    collation = reader.uint(1)
    reader.fixed(23)
    if reader.at_end and capabilities & CAN.CLIENT_SSL:
        return TlsRequest(capabilities)
    user = reader.terminated()
    if capabilities & CAN.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA:
        authentication = reader.counted()
    elif capabilities & CAN.CLIENT_SECURE_CONNECTION:
        authentication = reader.fixed(reader.uint(1))
    else:
        authentication = reader.terminated()
    database = reader.terminated() if capabilities & CAN.CLIENT_CONNECT_WITH_DB and not reader.at_end else None
    plugin = None
    if capabilities & CAN.CLIENT_PLUGIN_AUTH and not reader.at_end:
        plugin = reader.terminated().decode("ascii", "replace")
    attributes: dict[str, str] = {}
    if capabilities & CAN.CLIENT_CONNECT_ATTRS and not reader.at_end:
        attributes = _attributes(reader.counted())
    return HandshakeResponse(
        capabilities, packet_bytes_max, collation, user, authentication, database or None, plugin, attributes
    )


def parse_change_user(payload: bytes, capabilities: int) -> ChangeUser:
    reader = PayloadReader(payload)
    user = reader.terminated()
    if capabilities & CAN.CLIENT_SECURE_CONNECTION:
        authentication = reader.fixed(reader.uint(1))
    else:
        authentication = reader.terminated()
    database = reader.terminated()
    collation = reader.uint(2) if len(payload) - reader.position >= 2 else None
    plugin = None
    if capabilities & CAN.CLIENT_PLUGIN_AUTH and not reader.at_end:
        plugin = reader.terminated().decode("ascii", "replace")
    return ChangeUser(user, authentication, database, collation, plugin)


def _attributes(data: bytes) -> dict[str, str]:
    reader = PayloadReader(data)
    found: dict[str, str] = {}
    while not reader.at_end:
        key = reader.counted().decode("utf-8", "replace")
        found[key] = reader.counted().decode("utf-8", "replace")
    return found


def length(number: int) -> bytes:
    """A number as the protocol writes lengths and counts."""
    return bytes((number,)) if number < 251 else bytes(mimic.uint_len(number))


def counted(data: bytes) -> bytes:
    """`data` behind its length."""
    return length(len(data)) + data


_OK_TAIL = struct.Struct("<HH")


def ok(
    status: int, *, affected: int = 0, last_insert_id: int = 0, warnings: int = 0, info: str = "", tag: int = 0
) -> bytes:
    """An OK payload; `tag` 0xFE makes it the end of a result for clients without EOF packets."""
    head = bytes((tag,)) + length(affected) + length(last_insert_id & 0xFFFF_FFFF_FFFF_FFFF)
    tail = _OK_TAIL.pack(status, min(warnings, 0xFFFF))
    return head + tail + counted(info.encode()) if info else head + tail


def eof(status: int, warnings: int = 0) -> bytes:
    return b"\xfe" + _OK_TAIL.pack(min(warnings, 0xFFFF), status)


def error(code: int, sqlstate: str, message: str, *, codec: str = "utf-8") -> bytes:
    return struct.pack("<BH", 0xFF, code) + b"#" + sqlstate.encode() + message.encode(codec, "replace")[:4096]


def early_error(error: MillraceError) -> bytes:
    """An error instead of a greeting: it has no SQLSTATE, the client has not said that it knows them."""
    return struct.pack("<BH", 0xFF, error.condition.code) + str(error).encode()


def prepared(statement_id: int, column_count: int, parameter_count: int, warnings: int = 0) -> bytes:
    return struct.pack("<BIHHBH", 0, statement_id, column_count, parameter_count, 0, min(warnings, 0xFFFF))
