"""Programs over a table's columns that a shard runs: groups and first rows.

| node                             | what comes out                                                           |
|----------------------------------|--------------------------------------------------------------------------|
| Aggregate of a filter of a table | partial aggregates, see `dataflow.columns.grouping`, also several times  |
| TopK of a filter of a table      | the stored rows that may be among the first, with their keys, and the number of all |

`program_of` is None where something has no exact form by column. A program is for one scan. It may give up (`GaveUp`) while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from backend.scans.column_cache import Chunk, ColumnCache, read_chunks, widened
from dataflow.columns.expressions import Columns, condition
from dataflow.columns.first_rows import FirstRows
from dataflow.columns.grouping import Grouped
from dataflow.columns.vector import Array
from dataflow.expressions.expression import Expression, columns_of
from dataflow.expressions.rewriting import composed
from dataflow.plan.node import Aggregate, Base, Join, Node, Order, TopK
from dataflow.schema import Table
from persistence.view import StateView

GROUPS_MAX = 1_000_000
"""So many groups are held for a scan; then those that there are go out."""
GROUPS_AT_ONCE = 16_384
"""A batch of groups has no more, so that no message is long."""
FIRST_ROWS_MAX = 100_000
CHUNK_PLACES = 1 << 20
"""More than a chunk has rows."""
ROWS_BYTES = 1 << 20
FOUND = b"found"

Pair = tuple[bytes, bytes]


class Filter:
    """The rows of a table that pass a filter, as columns. `read` are the columns that somebody reads."""

    def __init__(self, table: Table, where: Expression | None, read: frozenset[int]) -> None:
        self._table = table
        self._condition = None if where is None else condition(where)
        self.is_exact = where is None or self._condition is not None
        self._places = sorted(read | (columns_of(where) if where is not None else frozenset()))

    def chunks(self, view: StateView, start: bytes, stop: bytes, cache: ColumnCache | None, with_keys: bool = False) -> Iterator[tuple[Chunk, Columns, Array]]:
        """Chunks of rows, the columns of those that pass, and which of the chunk's these are."""
        source = read_chunks if cache is None else cache.chunks
        for chunk in source(view, self._table, start, stop, self._places, with_keys):
            columns = Columns(chunk.count, {place: widened(chunk.vectors[place]) for place in self._places})
            if self._condition is None:
                yield chunk, columns, np.arange(chunk.count)
                continue
            mask = self._condition(columns)
            yield chunk, columns.filtered(mask), np.flatnonzero(mask)


class GroupProgram:
    def __init__(self, source: Filter, grouped: Grouped) -> None:
        self._source = source
        self._grouped = grouped

    def batches(self, view: StateView, start: bytes, stop: bytes, cache: ColumnCache | None) -> Iterator[bytes]:
        for _, columns, _ in self._source.chunks(view, start, stop, cache):
            self._grouped.add(columns)
            yield b""
            if self._grouped.count > GROUPS_MAX:
                yield from self._out()
        yield from self._out()

    def _out(self) -> Iterator[bytes]:
        batch = self._grouped.batch()
        if batch is not None:
            for start in range(0, batch.num_rows, GROUPS_AT_ONCE):
                yield packed(batch.slice(start, GROUPS_AT_ONCE))


class FirstRowsProgram:
    def __init__(self, source: Filter, first: FirstRows) -> None:
        self._source = source
        self._first = first

    def batches(self, view: StateView, start: bytes, stop: bytes, cache: ColumnCache | None) -> Iterator[bytes]:
        starts: list[bytes] = []
        count = 0  # of the rows that pass the filter
        for chunk, columns, places in self._source.chunks(view, start, stop, cache, True):
            self._first.add(columns, places + len(starts) * CHUNK_PLACES)
            starts.append(chunk.start)
            count += len(places)
            yield b""
        places = self._first.rows()
        for number in np.unique(places // CHUNK_PLACES).tolist():
            pairs = next(view.pairs(starts[number], stop))
            wanted = places[places // CHUNK_PLACES == number] % CHUNK_PLACES
            yield from _batches([pairs[place] for place in wanted.tolist()], count)
            count = 0


Program = GroupProgram | FirstRowsProgram


def program_of(node: Node, table: Table) -> Program | None:
    if isinstance(node, Aggregate):
        grouped = Grouped.of(node)
        source = _filter(node.input, table, _read_by(node))
        return None if grouped is None or source is None else GroupProgram(source, grouped)
    if isinstance(node, TopK):
        first = FirstRows.of(node.order, node.limit) if 0 < node.limit <= FIRST_ROWS_MAX else None
        source = _filter(node.input, table, frozenset(_columns(node.order)))
        return None if first is None or source is None else FirstRowsProgram(source, first)
    return None


def _filter(node: Node, table: Table, read: frozenset[int]) -> Filter | None:
    if isinstance(node, Base):
        return Filter(table, None, read)
    if not isinstance(node, Join) or len(node.inputs) != 1 or not isinstance(node.inputs[0], Base) or node.equalities:
        return None
    found = Filter(table, node.filter, read)
    return found if found.is_exact else None


def _read_by(node: Aggregate) -> frozenset[int]:
    """The columns of the table that an aggregate looks at."""
    outputs = node.input.outputs if isinstance(node.input, Join) else None
    arguments = [composed(each, outputs) for function in node.functions for each in function.arguments]
    places = {each for expression in arguments for each in columns_of(expression)}
    for column in node.group:
        places |= {column} if outputs is None else columns_of(outputs[column])
    return frozenset(places)


def _columns(order: Sequence[Order]) -> Iterator[int]:
    for each in order:
        yield from columns_of(each.expression)


def _batches(pairs: Sequence[Pair], count: int) -> Iterator[bytes]:
    """Stored rows, not too many at once; the first batch says of how many they are the first."""
    start = size = 0
    for place, (_, value) in enumerate(pairs):
        size += len(value)
        if size >= ROWS_BYTES or place == len(pairs) - 1:
            part = pairs[start : place + 1]
            arrays = [pa.array([key for key, _ in part], pa.binary()), pa.array([each for _, each in part], pa.binary())]
            yield packed(pa.RecordBatch.from_arrays(arrays, ["key", "value"], metadata={FOUND: str(count)}))
            start, size, count = place + 1, 0, 0


def packed(batch: pa.RecordBatch) -> bytes:
    """A batch with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(data: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()


def found_rows(batches: Sequence[pa.RecordBatch]) -> int:
    """Of how many rows these batches have the first."""
    return sum(int(each.schema.metadata[FOUND]) for each in batches)
