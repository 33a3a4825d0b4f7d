"""Decoded columns of large tables that a shard keeps for the next scan, as long as no row of the table has changed.

A table's columns are kept as chunks, in the order of its keys, as of one epoch. They are as good for another epoch if no row of the table
was changed since the earlier of the two: a shard notes the epoch that changes a table before anything of it is written. The columns of the table that
was read longest ago leave first. Only the thread of the scans uses this.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dataflow.columns.vector import Array, NumberVector, Vector
from dataflow.schema import Table
from persistence.columnar import ColumnDecoder
from persistence.key_range import after_prefix
from persistence.layout import row_prefix
from persistence.view import VERSION_BYTES, StateView

CACHE_BYTES_MAX = 256 << 20
_NARROW = (np.int8, np.int16, np.int32)


@dataclass(slots=True)
class Chunk:
    """Some rows that follow each other: the key of the first, if somebody has wanted it, how many they are, and columns by position."""

    start: bytes
    count: int
    vectors: dict[int, Vector]


@dataclass(slots=True)
class _Kept:
    epoch: int
    chunks: list[Chunk]
    size: int


class ColumnCache:
    """`changed` is the last epoch that has changed, or is about to change, rows whose keys begin so."""

    def __init__(self, changed: Callable[[bytes], int], bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._changed = changed
        self._bytes_max = bytes_max
        self._tables: OrderedDict[Table, _Kept] = OrderedDict()

    @property
    def size(self) -> int:
        return sum(each.size for each in self._tables.values())

    def chunks(self, view: StateView, table: Table, start: bytes, stop: bytes, places: Sequence[int], with_keys: bool) -> Iterator[Chunk]:
        """The columns at `places` of the rows of a range, and the keys of the chunks if they are wanted; `view` is read unless they are kept."""
        prefix = row_prefix(table.id)
        if (start, stop) != (prefix, after_prefix(prefix)) or self._changed(prefix) > view.epoch:
            yield from read_chunks(view, table, start, stop, places, with_keys)
            return
        found = self._found(view, table, prefix)
        kept = [] if found is None else found.chunks
        missing = [each for each in places if not kept or each not in kept[0].vectors]
        if found is not None and not missing and (not kept or kept[0].start or not with_keys):
            self._tables.move_to_end(table)
            yield from kept
            return
        read: list[Chunk] = []
        size = 0
        for number, chunk in enumerate(read_chunks(view, table, start, stop, missing, with_keys)):
            chunk.vectors = {place: _narrowed(each) for place, each in chunk.vectors.items()}
            if kept:
                assert chunk.count == kept[number].count
                chunk = Chunk(chunk.start or kept[number].start, chunk.count, kept[number].vectors | chunk.vectors)
            size += sum(map(_size, chunk.vectors.values()))
            if size <= self._bytes_max:
                read.append(chunk)
            yield chunk
        if size <= self._bytes_max and self._changed(prefix) <= view.epoch:  # else what was read may be of before or after
            self._keep(table, _Kept(view.epoch, read, size))

    def _found(self, view: StateView, table: Table, prefix: bytes) -> _Kept | None:
        found = self._tables.get(table)
        if found is None or self._changed(prefix) <= min(found.epoch, view.epoch):
            return found
        del self._tables[table]
        return None

    def _keep(self, table: Table, kept: _Kept) -> None:
        for each in [each for each in self._tables if each.id == table.id]:
            del self._tables[each]
        self._tables[table] = kept
        while self.size > self._bytes_max:
            self._tables.popitem(last=False)


def _size(vector: Vector) -> int:
    return int(vector.values.nbytes if isinstance(vector, NumberVector) else vector.nbytes)


def read_chunks(view: StateView, table: Table, start: bytes, stop: bytes, places: Sequence[int], with_keys: bool) -> Iterator[Chunk]:
    decoder = ColumnDecoder(table, places)
    if with_keys:
        source = ((pairs[0][0], [value for _, value in pairs]) for pairs in view.pairs(start, stop))
    else:
        source = ((b"", values) for values in view.values(start, stop))
    for first, values in source:
        vectors = decoder.vectors(values, VERSION_BYTES) if places else ()
        yield Chunk(first, len(values), dict(zip(places, vectors)))


def _narrowed(vector: Vector) -> Vector:
    """The same numbers in as few bytes as they need."""
    if not isinstance(vector, NumberVector):
        return vector
    low, high = int(vector.values.min()), int(vector.values.max())
    for kind in _NARROW:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return NumberVector(vector.values.astype(kind), vector.missing)
    return vector


def widened(vector: Vector) -> Vector:
    if not isinstance(vector, NumberVector) or vector.values.dtype == np.int64:
        return vector
    values: Array = vector.values.astype(np.int64)
    return NumberVector(values, vector.missing)
