"""The compressed protocol: a layer between the socket and packet framing.

A compressed frame is seven bytes (compressed length, sequence, length before compression;
0 there means the body is stored as it is) and a body. Its sequence numbers are its own.
"""

from __future__ import annotations

import zlib

PLAIN_BYTES_MIN = 50
BODY_BYTES_MAX = 0xFFFFFF


class CompressionLayer:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._sequence = 0

    def receive(self, data: bytes) -> bytes:
        """Plain bytes of the frames that are complete. Raises ValueError for a broken frame."""
        self._buffer += data
        plain: list[bytes] = []
        position = 0
        while len(self._buffer) - position >= 7:
            header = self._buffer[position : position + 7]
            length = int.from_bytes(header[:3], "little")
            plain_length = int.from_bytes(header[4:7], "little")
            if len(self._buffer) - position - 7 < length:
                break
            body = bytes(self._buffer[position + 7 : position + 7 + length])
            if plain_length:
                inflater = zlib.decompressobj()
                try:
                    body = inflater.decompress(body, plain_length)
                except zlib.error as error:
                    raise ValueError("compressed frame does not inflate") from error
                if len(body) != plain_length:
                    raise ValueError("compressed frame has another length than it says")
            plain.append(body)
            self._sequence = (header[3] + 1) & 0xFF
            position += 7 + length
        del self._buffer[:position]
        return b"".join(plain)

    def send(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        for start in range(0, len(data), BODY_BYTES_MAX):
            body = data[start : start + BODY_BYTES_MAX]
            plain_length = 0
            if len(body) >= PLAIN_BYTES_MIN:
                packed = zlib.compress(body, 1)
                if len(packed) < len(body):
                    body, plain_length = packed, len(body)
            parts.append(
                len(body).to_bytes(3, "little") + bytes((self._sequence,)) + plain_length.to_bytes(3, "little")
            )
            parts.append(body)
            self._sequence = (self._sequence + 1) & 0xFF
        return b"".join(parts)
