"""Scans of a shard's tables by column: Arrow record batches, made in a thread beside the event loop.

A scan reads one LevelDB snapshot. It is asked for message by message, so it is never further than its reader; the thread takes
messages of several scans in turn. Scans belong to the connection that began them and go with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from time import perf_counter
from typing import Any

import pyarrow as pa

from backend.network.scan_messages import EndColumns, ScanColumns, ScannedColumns
from backend.network.transport import Peer, failure
from backend.scans.column_cache import ColumnCache
from backend.scans.column_programs import program_of
from controller.catalog import decode_node, decode_table
from dataflow.columns.vector import GaveUp
from dataflow.errors import Condition, Retryable
from dataflow.expressions.column_filter import ColumnFilter
from dataflow.expressions.expression import Column
from dataflow.expressions.notices import overheard
from dataflow.plan.node import Join
from persistence.columnar import ColumnDecoder
from persistence.row_encoding import LaterFormat
from persistence.view import VERSION_BYTES, StateView

SCANS_MAX = 256
MESSAGE_BYTES_TARGET = 1 << 20
MESSAGE_S = 0.03


class RowsToColumns:
    """What a scan makes of stored rows: those that pass the filter, and the columns that are wanted of them."""

    def __init__(self, node: bytes, table: bytes) -> None:
        found = decode_node(node)
        assert isinstance(found, Join) and found.outputs is not None
        outputs = [each.index for each in found.outputs if isinstance(each, Column)]
        assert len(outputs) == len(found.outputs)
        schema = decode_table(table)
        self._filter = None if found.filter is None else ColumnFilter(found.filter)
        read = sorted({*outputs, *(self._filter.columns if self._filter is not None else ())})
        self._decoder = ColumnDecoder(schema, read)
        self._outputs = [read.index(each) for each in outputs]
        self._read = read
        self._names = [str(place) for place in range(len(outputs))]

    def batch(self, values: list[bytes], is_silent: bool) -> pa.RecordBatch | None:
        """None if no row passes the filter. A warning is `GaveUp` where it has to be silent."""
        columns = self._decoder.decode(values, VERSION_BYTES)
        chosen = [columns[place] for place in self._outputs]
        count = len(values)
        if self._filter is not None:
            rows = None
            if not self._filter.is_columnar:
                rows = self._decoder.rows(values, VERSION_BYTES)
            with overheard() as heard:
                mask = self._filter.mask(dict(zip(self._read, columns)), rows, count)
            if heard and is_silent:
                raise GaveUp(heard[0][0].name)
            chosen = [each.filter(mask) for each in chosen]
            count = mask.true_count
        if not count:
            return None
        return pa.RecordBatch.from_arrays(chosen, self._names)


rows_to_columns = lru_cache(maxsize=64)(RowsToColumns)


@dataclass(slots=True)
class _Scan:
    peer: Peer
    epoch: int
    batches: Iterator[bytes]


class ColumnScans:
    """`view_of(peer, epoch)` is the state to be read; `wanted(epoch)` is told that it still is; `changed` is as in `ColumnCache`."""

    def __init__(self, view_of: Callable[[Peer, int], StateView], wanted: Callable[[int], object], changed: Callable[[bytes], int]) -> None:
        self._view_of = view_of
        self._wanted = wanted
        self._cache = ColumnCache(changed)
        self._scans: dict[int, _Scan] = {}
        self._next_scan = 1
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="columns")
        self.handlers: dict[type, Callable[[Peer, int, Any], None]] = {ScanColumns: self.scan, EndColumns: self.end}

    def scan(self, peer: Peer, request: int, message: ScanColumns) -> None:
        number = message.scan
        if number:
            found = self._scans.get(number)
            if found is None or found.peer is not peer:
                raise Retryable(Condition.UNKNOWN_ERROR, "the scan is not open any more")
            self._wanted(found.epoch)
        else:
            if len(self._scans) >= SCANS_MAX:
                raise Retryable(Condition.UNKNOWN_ERROR, "too many scans at once")
            number = self._next_scan
            self._next_scan += 1
            found = _Scan(peer, message.epoch, batches_of(self._view_of(peer, message.epoch), message, self._cache))
            self._scans[number] = found
        work = asyncio.get_running_loop().run_in_executor(self._thread, message_of, found.batches)
        work.add_done_callback(partial(self._send, peer, request, number))

    def _send(self, peer: Peer, request: int, number: int, work: asyncio.Future[tuple[list[bytes], bool]] | Future[Any]) -> None:
        if work.cancelled():
            return
        error = work.exception()
        if error is not None:
            self._scans.pop(number, None)
            peer.send(ScannedColumns(0, [], str(error)) if isinstance(error, GaveUp) else failure(error), request)
            return
        batches, ended = work.result()
        if ended:
            self._scans.pop(number, None)
        peer.send(ScannedColumns(0 if ended else number, batches), request)

    def end(self, peer: Peer, request: int, message: EndColumns) -> None:
        if message.scan in self._scans and self._scans[message.scan].peer is peer:
            del self._scans[message.scan]

    def peer_lost(self, peer: Peer) -> None:
        self._scans = {number: scan for number, scan in self._scans.items() if scan.peer is not peer}

    def close(self) -> None:
        """No thread reads the store any more when this returns."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._scans.clear()


def batches_of(view: StateView, message: ScanColumns, cache: ColumnCache | None = None) -> Iterator[bytes]:
    """The record batches that a scan is answered with; empty ones stand for the time that passes. May be `GaveUp`."""
    node = decode_node(message.node)
    if not isinstance(node, Join) or node.outputs is None:
        program = program_of(node, decode_table(message.table))
        assert program is not None
        try:
            yield from program.batches(view, message.start, message.stop, cache)
        except LaterFormat as error:
            raise GaveUp(str(error)) from None
        return
    columns = rows_to_columns(message.node, message.table)
    for values in view.values(message.start, message.stop):
        batch = columns.batch(values, message.is_silent)
        yield b"" if batch is None else batch.serialize().to_pybytes()


def message_of(batches: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """Some batches, and whether they were the last: as many as one message should have, or as are found in a while."""
    found: list[bytes] = []
    size, until = 0, perf_counter() + MESSAGE_S
    for batch in batches:
        if batch:
            found.append(batch)
        size += len(batch)
        if size >= MESSAGE_BYTES_TARGET or perf_counter() > until:
            return found, False
    return found, True
