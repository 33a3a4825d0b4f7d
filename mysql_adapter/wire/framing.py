"""Packets out of bytes and bytes out of packets; no socket, no meaning.

A packet is a payload behind four bytes: its length (three, little-endian) and a sequence
number. A payload of 16 MB - 1 or more travels in several frames, the last one shorter than that.

`Framer` invariant: it never holds more than one payload of `payload_bytes_max` plus what
arrived in the same read. A larger payload is skipped as it arrives and reported as `None`.
"""

from __future__ import annotations

from dataclasses import dataclass

FRAME_BYTES_MAX = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class Packet:
    """`payload` is None when it was larger than allowed. Sequence numbers are of its first and last frame."""

    first: int
    last: int
    payload: bytes | None


class ConnectionOver(Exception):
    """Ends the connection, whatever it interrupts: no command goes on after one of these."""


class Disconnected(ConnectionOver):
    """The client is gone, or has been told goodbye."""


class SequenceBroken(ConnectionOver):
    """Packets are not numbered one after the other."""


class Framer:
    def __init__(self, payload_bytes_max: int) -> None:
        self.payload_bytes_max = payload_bytes_max
        self._buffer = bytearray()
        self._position = 0
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._first = -1
        self._last = -1
        self._oversized = False
        self._skip_bytes = 0
        self._skip_ends_payload = False

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._position

    @property
    def is_empty(self) -> bool:
        """What comes next begins a payload."""
        return self._first < 0 and len(self._buffer) == self._position

    @property
    def is_skipping(self) -> bool:
        """A payload larger than allowed is on its way."""
        return self._oversized

    def feed(self, data: bytes) -> None:
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def take(self) -> Packet | None:
        """The next whole payload, or None until more bytes come."""
        while True:
            if self._skip_bytes:
                skipped = min(self._skip_bytes, self.buffered_bytes)
                self._position += skipped
                self._skip_bytes -= skipped
                if self._skip_bytes:
                    return None
                if self._skip_ends_payload:
                    return self._finish(None)
            buffer, position = self._buffer, self._position
            if len(buffer) - position < 4:
                return None
            header = int.from_bytes(buffer[position : position + 4], "little")
            length, sequence = header & FRAME_BYTES_MAX, header >> 24
            if self._first < 0:
                oversized = length > self.payload_bytes_max
            else:
                oversized = self._oversized or self._parts_bytes + length > self.payload_bytes_max
            if not oversized and len(buffer) - position - 4 < length:
                return None
            if self._first < 0:
                self._first = sequence
            elif sequence != (self._last + 1) & 0xFF:
                raise SequenceBroken
            self._last = sequence
            self._position = position + 4
            if oversized:
                self._oversized = True
                self._parts.clear()
                self._skip_bytes = length
                self._skip_ends_payload = length < FRAME_BYTES_MAX
                if not length:
                    return self._finish(None)
                continue
            payload = bytes(memoryview(buffer)[position + 4 : position + 4 + length])
            self._position += length
            if length < FRAME_BYTES_MAX:
                return self._finish(payload)
            self._parts.append(payload)
            self._parts_bytes += length

    def _finish(self, payload: bytes | None) -> Packet:
        if payload is not None and self._parts:
            payload = b"".join((*self._parts, payload))
            self._parts.clear()
        packet = Packet(self._first, self._last, payload)
        self._parts_bytes = 0
        self._first = self._last = -1
        self._oversized = False
        return packet

    def take_rest(self) -> bytes:
        """Everything that has arrived and not been taken; what follows is for another layer."""
        rest = bytes(self._buffer[self._position :])
        self._buffer.clear()
        self._position = 0
        return rest


def frame(payload: bytes, sequence: int) -> bytes:
    """`payload` as packets numbered from `sequence`; see `frames_of` for how many there are."""
    length = len(payload)
    if length < FRAME_BYTES_MAX:
        return (length | sequence << 24).to_bytes(4, "little") + payload
    parts: list[bytes] = []
    for start in range(0, length + 1, FRAME_BYTES_MAX):
        piece = payload[start : start + FRAME_BYTES_MAX]
        parts.append((len(piece) | sequence << 24).to_bytes(4, "little"))
        parts.append(piece)
        sequence = (sequence + 1) & 0xFF
    return b"".join(parts)


def frames_of(payload_bytes: int) -> int:
    """How many sequence numbers a payload of this size uses."""
    return payload_bytes // FRAME_BYTES_MAX + 1
