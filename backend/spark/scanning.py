"""Scans as a client has them: a SELECT as of one epoch, part by part, as Arrow record batches.

A part that is lost on the way is begun again at the same epoch, behind the rows that were taken already, if rows come in a known
order; a part whose epoch is gone fails, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pymysql

from backend.network.server_address import ServerAddress

LOST = frozenset({2003, 2006, 2013, 1053, 1205})
"""Errors of a server, an adapter or a worker that went away: 1205 is a shard that does not answer."""
CLOSED_SCAN = "the scan is not open any more"
TRIES_MAX = 6
PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class ScanPart:
    """`place` is the server's name of it; `lease` and `seconds` say how its epoch is kept."""

    query: str
    place: str
    epoch: int
    lease: str
    seconds: int

    @property
    def is_ordered(self) -> bool:
        """Whether its rows come in the order of their keys each time."""
        return not self.place.endswith(":")


def ask(connection: Any, procedure: str, *arguments: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"CALL millrace.{procedure}({', '.join(['%s'] * len(arguments))})", arguments)
        return list(cursor.fetchall())


def fields_of(connection: Any, query: str) -> pa.Schema:
    [(fields,)] = ask(connection, "describe_scan", query)
    return pa.ipc.read_schema(pa.py_buffer(fields))


def parts_of(connection: Any, query: str, count: int, seconds: int, epoch: tuple[int, str] | None = None) -> list[ScanPart]:
    """The parts of a SELECT as of now, or of an (epoch, lease) that is kept already."""
    [(number, lease)] = ask(connection, "keep_epoch", seconds) if epoch is None else [epoch]
    return [ScanPart(query, place, number, lease, seconds) for (place,) in ask(connection, "partition_scan", query, count)]


def read_part(address: ServerAddress, part: ScanPart) -> Iterator[pa.RecordBatch]:
    """The part's record batches, each row once."""

    def batches(again: bool) -> Iterator[pa.RecordBatch]:
        before = ("keep_epoch_again", part.lease, part.epoch, part.seconds) if again else None
        return read_batches(address, "CALL millrace.scan(%s, %s, %s)", (part.query, part.place, part.epoch), before)

    return resumed(batches, part.is_ordered)


def resumed(batches: Callable[[bool], Iterator[pa.RecordBatch]], is_ordered: bool) -> Iterator[pa.RecordBatch]:
    """Record batches, each row once, though they are begun again where the server was lost; `batches` is told if they are."""
    taken = 0
    for attempt in range(TRIES_MAX):
        skipped = taken
        try:
            for batch in batches(attempt > 0):
                if skipped >= batch.num_rows:
                    skipped -= batch.num_rows
                    continue
                found = batch.slice(skipped)
                skipped = 0
                taken += found.num_rows
                yield found
            return
        except (pymysql.err.Error, OSError) as error:
            if not _is_lost(error) or attempt == TRIES_MAX - 1 or (taken and not is_ordered):
                raise
        time.sleep(PAUSE_S * attempt)


def _is_lost(error: Exception) -> bool:
    if isinstance(error, pymysql.err.Error):
        return isinstance(error, pymysql.err.InterfaceError) or error.args[0] in LOST or CLOSED_SCAN in str(error)
    return True


def read_batches(
    address: ServerAddress, call: str, arguments: tuple[object, ...], before: tuple[Any, ...] | None = None
) -> Iterator[pa.RecordBatch]:
    """What a CALL answers as record batches, after another CALL if `before` is one."""
    connection = address.connect(cursorclass=pymysql.cursors.SSCursor)
    try:
        if before is not None:
            ask(connection, *before)
        cursor = connection.cursor()
        cursor.execute(call, arguments)
        fields = pa.ipc.read_schema(pa.py_buffer(cursor.fetchone()[0]))
        while (row := cursor.fetchone()) is not None:
            yield pa.ipc.read_record_batch(pa.py_buffer(row[0]), fields)
        cursor.close()
    finally:
        if connection._result is not None:
            connection._result.unbuffered_active = False  # what was not read is not wanted
        connection._force_close()
