"""Outcomes as packets: OK, result sets in text or binary, errors.

What depends on the columns alone (their definitions, the row encoder) is prepared once for
each plan and kept by the identity of its column tuple, which the plan cache keeps alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Protocol

from backend.execution.answering.instant import Cell
from backend.execution.outcome import Done, ResultSet, RowStream
from backend.execution.pace import breathe
from backend.execution.rows import drop
from backend.shared_memory.columns import Entries
from controller.sql.plan import OutputColumn
from dataflow.values.types import Row, SqlType
from mysql_adapter.wire import packets
from mysql_adapter.wire.columns import column_definition
from mysql_adapter.wire.framing import frame
from mysql_adapter.wire.packets import DEPRECATE_EOF, FOUND_ROWS
from mysql_adapter.wire.results import Encoder, binary_encoder, text_encoder
from mysql_adapter.wire.row_batches import row_batches
from mysql_adapter.wire.spool import send_spooled

ROWS_PER_CHUNK = 256
ROWS_FIRST = 16
CHUNK_BYTES = 256 * 1024
SPOOL_AFTER_S = 0.25
SPOOLED_ROWS_MIN = 1_000
FORMATS_MAX = 4096
FIRST_SEQUENCE = 1


Answer = tuple[bytes, int]
"""The packets, and what FOUND_ROWS() is afterwards."""
RowPackets = tuple[tuple[bytes, bytes], ...]
_NUMBERS = tuple(bytes((number,)) for number in range(256))


class Wire(Protocol):
    """The sending side of a connection."""

    capabilities: int

    def send(self, payload: bytes) -> None: ...

    def send_framed(self, data: bytes, next_sequence: int) -> None: ...

    @property
    def next_packet_sequence(self) -> int: ...

    @property
    def wants_drain(self) -> bool: ...

    async def drain(self, patience_s: float | None = None) -> bool: ...


class ResultFormat:
    """How the rows of one column list go out to a session with these settings."""

    __slots__ = ("_codec", "_header", "_time_zone", "_types", "binary", "columns", "definitions", "text")

    def __init__(self, columns: tuple[OutputColumn, ...], results_id: int | None, codec: str, time_zone: str) -> None:
        self.columns = columns
        self.definitions = [column_definition(column, results_id) for column in columns]
        types = tuple(column.type for column in columns)
        self._types, self._codec, self._time_zone = types, codec, time_zone
        self.text: Encoder = text_encoder(types, codec, time_zone)
        self.binary: Encoder | None = None
        payloads = [packets.length(len(columns)), *self.definitions]
        self._header = b"".join(
            frame(payload, (FIRST_SEQUENCE + index) & 0xFF) for index, payload in enumerate(payloads)
        )

    def encoder(self, binary: bool) -> Encoder:
        if not binary:
            return self.text
        if self.binary is None:
            self.binary = binary_encoder(self._types, self._codec, self._time_zone)
        return self.binary

    def _head(self, status: int, deprecate_eof: bool) -> tuple[bytes, int]:
        """What comes before the rows, and the number of the first packet after that."""
        head, first = self._header, (FIRST_SEQUENCE + len(self.columns) + 1) & 0xFF
        return (head, first) if deprecate_eof else (head + frame(packets.eof(status), first), (first + 1) & 0xFF)

    def whole(self, status: int, deprecate_eof: bool, binary: bool) -> Callable[[Sequence[Row]], bytes]:
        """Makes everything that answers a command with rows and no warnings, as `send_result` sends it."""
        head, first = self._head(status, deprecate_eof)
        encode, end = self.encoder(binary), end_payload(status, 0, deprecate_eof)

        def made(rows: Sequence[Row]) -> bytes:
            encoded, sequence = encode(rows, first)
            return head + encoded + frame(end, sequence)

        return made

    def assembled(self, status: int, deprecate_eof: bool) -> Callable[[Iterable[RowPackets]], Answer]:
        """As `whole`, of rows that are packets already, as `row_packets` makes them; with their number."""
        head, first = self._head(status, deprecate_eof)
        end = end_payload(status, 0, deprecate_eof)

        def made(rows: Iterable[RowPackets]) -> Answer:
            pieces = [head]
            sequence = first
            for packets_ in rows:
                for length, payload in packets_:
                    pieces += (length, _NUMBERS[sequence & 0xFF], payload)
                    sequence += 1
            pieces.append(frame(end, sequence & 0xFF))
            return b"".join(pieces), sequence - first

        return made

    def batched(
        self, status: int, deprecate_eof: bool, binary: bool, cells: Sequence[Cell], types: Sequence[SqlType]
    ) -> Callable[[Entries], Answer | None] | None:
        """As `whole`, of the rows in entries of a view with these `types`.

        What is made, or all of it, is None where it has to be done row by row.
        """
        batches = row_batches(cells, types, self._types, self._codec, binary)
        if batches is None:
            return None
        encode = batches.encoded
        head, first = self._head(status, deprecate_eof)
        end = end_payload(status, 0, deprecate_eof)

        def made(entries: Entries) -> Answer | None:
            rows, count = encode(entries, first), len(entries.words)
            return None if rows is None else (b"".join((head, rows, frame(end, first + count & 0xFF))), count)

        return made

    def row_packets(self, rows: Sequence[Row], binary: bool) -> RowPackets:
        """Rows as packets without their numbers: the length of each, and the rest. No row may be longer than a packet."""
        encode = self.encoder(binary)
        framed = [encode((row,), 0)[0] for row in rows]
        return tuple([(each[:3], each[4:]) for each in framed])

    def send_header(self, wire: Wire) -> None:
        if wire.next_packet_sequence == FIRST_SEQUENCE:
            wire.send_framed(self._header, (FIRST_SEQUENCE + len(self.columns) + 1) & 0xFF)
            return
        wire.send(packets.length(len(self.columns)))
        for definition in self.definitions:
            wire.send(definition)


class Formats:
    """The formats in use by one process."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int | None, str, str], ResultFormat] = {}

    def of(
        self, columns: tuple[OutputColumn, ...], results_id: int | None, codec: str, time_zone: str
    ) -> ResultFormat:
        key = (id(columns), results_id, codec, time_zone)
        found = self._known.get(key)
        if found is None or found.columns is not columns:
            if len(self._known) >= FORMATS_MAX:
                self._known.clear()
            found = self._known[key] = ResultFormat(columns, results_id, codec, time_zone)
        return found


def send_done(wire: Wire, done: Done, status: int) -> None:
    affected = done.matched if wire.capabilities & FOUND_ROWS else done.affected
    wire.send(
        packets.ok(
            status,
            affected=affected,
            last_insert_id=done.last_insert_id,
            warnings=len(done.warnings),
            info=done.info,
        )
    )


def send_end(wire: Wire, status: int, warnings: int = 0) -> None:
    wire.send(end_payload(status, warnings, bool(wire.capabilities & DEPRECATE_EOF)))


def end_payload(status: int, warnings: int, deprecate_eof: bool) -> bytes:
    """What ends rows: EOF, or OK for clients that want no EOF."""
    return packets.ok(status, warnings=warnings, tag=0xFE) if deprecate_eof else packets.eof(status, warnings)


def send_metadata_end(wire: Wire, status: int) -> None:
    if not wire.capabilities & DEPRECATE_EOF:
        wire.send(packets.eof(status))


async def send_rows(wire: Wire, encode: Encoder, rows: list[Row], patience_s: float | None = None) -> None:
    """Send `rows`; if the client does not read for `patience_s`, they are used up and wait in a file."""
    start, count = 0, ROWS_FIRST
    while start < len(rows):
        chunk = rows if len(rows) <= count and start == 0 else rows[start : start + count]
        data, sequence = encode(chunk, wire.next_packet_sequence)
        wire.send_framed(data, sequence)
        start += len(chunk)
        breathe()
        if wire.wants_drain and not await wire.drain(patience_s if len(rows) - start > SPOOLED_ROWS_MIN else None):
            rest = rows[start:]
            drop(rows)
            await send_spooled(wire, encode, rest)
            return
        # Large rows go out a few at a time: what a client does not read yet stays in one piece only.
        count = min(ROWS_PER_CHUNK, CHUNK_BYTES * len(chunk) // len(data) + 1)


async def send_result(wire: Wire, format: ResultFormat, result: ResultSet, status: int, binary: bool) -> None:
    """Send a result; its rows may be used up."""
    format.send_header(wire)
    send_metadata_end(wire, status)
    await send_rows(wire, format.encoder(binary), result.rows, SPOOL_AFTER_S)
    send_end(wire, status, len(result.warnings))


async def send_stream(wire: Wire, format: ResultFormat, stream: RowStream, status: int, binary: bool) -> None:
    """Send rows as they are read, and read no faster than the client takes them."""
    async with aclosing(stream.chunks):
        format.send_header(wire)
        send_metadata_end(wire, status)
        encode = format.encoder(binary)
        while (rows := await stream.next()) is not None:
            await send_rows(wire, encode, rows)
        send_end(wire, status, len(stream.warnings()))
