"""Rows that a slow client has not read yet, as packets in an unnamed file instead of objects in memory.

Only results that had to be computed as a whole need it: other large ones are read as they are sent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Protocol

from backend.execution.pace import breathe
from dataflow.errors import Condition, MillraceError
from dataflow.values.types import Row

ROWS_PER_PIECE = 256
PIECE_BYTES = 256 * 1024


class PacketSink(Protocol):
    def send_framed(self, data: bytes, next_sequence: int) -> None: ...

    @property
    def next_packet_sequence(self) -> int: ...

    async def drain(self, patience_s: float | None = None) -> bool: ...


async def send_spooled(
    wire: PacketSink, encode: Callable[[Sequence[Row], int], tuple[bytes, int]], rows: list[Row]
) -> None:
    """Send `rows`, which are used up long before the client has read them."""
    with tempfile.TemporaryFile(prefix="millrace-result-") as file:
        sequence = wire.next_packet_sequence
        try:
            sequence = await _written(file, encode, rows, sequence)
        except OSError as error:
            raise MillraceError(Condition.WRITE_ERROR, tempfile.gettempdir(), error.strerror) from error
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            # Numbers matter to who sends a packet next, and before the end that can only be an error.
            wire.send_framed(piece, sequence)
            await wire.drain()


async def _written(
    file: IO[bytes], encode: Callable[[Sequence[Row], int], tuple[bytes, int]], rows: list[Row], sequence: int
) -> int:
    """Move the rows into the file; the number of the packet after them."""
    rows.reverse()  # what is taken off the end of a list is gone at once
    count = ROWS_PER_PIECE
    while rows:
        piece = rows[-count:]
        del rows[-count:]
        piece.reverse()
        data, sequence = encode(piece, sequence)
        file.write(data)
        count = min(ROWS_PER_PIECE, PIECE_BYTES * len(piece) // len(data) + 1)
        breathe()
    return sequence
