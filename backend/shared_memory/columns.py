"""Columns of many keys at once: numpy looks them up and takes them out of the entries' cells.

For views with integer keys and at most one row for each key. Where that does not hold the
caller has to go row by row.

Entries are copied whole, all with as many bytes as the largest has, because what an entry costs
is the way to it: columns are then cut out of the copy. What lies behind a smaller entry is
copied along and never looked at. Where one is very large, only what stands before the rows is
copied so, and texts for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.shared_memory.entry import cell_code
from backend.shared_memory.probing import Array, find, tags_of
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import (
    COMPLETE,
    EPOCH,
    HEADER_BYTES,
    LENGTH_BITS,
    LENGTH_MASK,
    SLACK_BYTES,
    WIDTH,
    Segment,
)
from dataflow.types import BLOBS, SqlType

TRIES_MAX = 20

WORDS_MAX = SLACK_BYTES // 8
"""The texts of larger entries are copied one by one."""

_LENGTH_BITS, _LENGTH_MASK = np.uint64(LENGTH_BITS), np.uint64(LENGTH_MASK)
_HEADER_WORDS = HEADER_BYTES // 8
_UNCHECKED = pc.TakeOptions(boundscheck=False)


@lru_cache(maxsize=64)
def _odd(count: int) -> Any:
    return pa.array(np.arange(1, 2 * count, 2))


@lru_cache(maxsize=64)
def _places(count: int, head: int, size: int) -> Array:
    """Where rows begin in so many entries of `size` words, in bytes."""
    return np.arange(8 * head, 8 * (head + count * size), 8 * size)


class _TornRead(Exception):
    """An entry's cells do not fit its length: the writer is at it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The row of each key that has one, column by column, in the order of the keys.

    `known` says which keys were found at all; `present` which of them have a row, and these
    are the rows of `cells`: an array for each column (texts as Arrow arrays). `nulls` has a
    bit for each column of each row.
    """

    known: Array
    present: Array
    cells: list[Any]
    nulls: Array


class ColumnReader:
    """Reads the columns of a view with these types through `reader`."""

    def __init__(self, reader: SharedViewReader, types: Sequence[SqlType]) -> None:
        assert reader.is_exact
        self._reader = reader
        self._codes = [cell_code(each) for each in types]
        self._binary = [each.kind in BLOBS for each in types]
        self._map(reader.segment)

    def _map(self, segment: Segment) -> None:
        self._segment = segment
        self._shift = segment.shift
        self._indexes = (segment.index_array(0), segment.index_array(1))
        self._touched = segment.touched_array()
        self._buffer = pa.py_buffer(segment.memory)
        self._numbers = segment.array(np.int64)
        self._blocks: dict[int, Array] = {}
        self._has_cells = segment.words[WIDTH] == len(self._codes)
        self._words = segment.words  # last: see SharedViewReader

    def read(self, keys: Array, wanted: Sequence[int] | None = None) -> Columns | None:
        """The rows of these keys, int64, as of one epoch; None if it has to be done row by row.

        `wanted` are the columns to take, all if it is not given.
        """
        tags = tags_of(keys)
        chosen = range(len(self._codes)) if wanted is None else wanted
        for _ in range(TRIES_MAX):
            if self._reader.segment is not self._segment:
                self._map(self._reader.segment)
            if not self._has_cells or self._reader.is_gone:
                return None
            words = self._words
            epoch = words[EPOCH]
            try:
                found = self._columns(tags, epoch, chosen)
                if self._reader.is_valid(words, epoch):
                    return found
            except _TornRead:
                assert not self._reader.is_valid(words, epoch), "an entry is damaged"
            if self._reader.is_gone:
                return None
        return None

    def _columns(self, tags: Array, epoch: int, wanted: Sequence[int]) -> Columns | None:
        index = self._indexes[epoch & 1]
        positions, missing = find(index, tags, self._shift)
        self._touched[positions] = 1
        locations = index[positions + 1]
        starts: Array = (locations >> _LENGTH_BITS).view(np.int64)
        locations &= _LENGTH_MASK
        lengths = locations.view(np.int64)
        # What was not found is read at the end of the header, which says that there is no row.
        np.maximum(starts, _HEADER_WORDS, out=starts)
        width = len(self._codes)
        head = width + 2
        starts -= head
        size = head + (int(lengths.max(initial=0)) + 7 >> 3)
        texts = any(self._codes[place] == "s" for place in wanted)
        cells: dict[int, Array] | Array
        if texts and size <= WORDS_MAX:
            entries = self._block(size)[starts].view(np.int64).reshape(-1, size)
            cells = np.ascontiguousarray(entries[:, :head].T)
            buffer, places = pa.py_buffer(entries), _places(len(entries), head, size)
        else:
            cells = {place: self._numbers[starts + place] for place in {*wanted, width, width + 1}}
            buffer, places = self._buffer, starts + head << 3
        present = cells[width + 1] == 1  # no key follows the rows: it is a number
        if not present.all():
            if (cells[width + 1] > 1).any():
                return None
            lengths, places = lengths[present], places[present]
            cells = {place: cells[place][present] for place in {*wanted, width}}
        known = np.ones(len(tags), bool) if self._words[COMPLETE] else ~missing
        found: list[Any] = []
        for place in wanted:
            code, values = self._codes[place], cells[place]
            if code == "s":
                found.append(_texts(buffer, places, lengths, values, self._binary[place]))
            elif code == "d":
                found.append(values.view(np.float64))
            else:
                found.append(values.view(np.uint64) if code == "Q" else values)
        return Columns(known, present, found, cells[width])

    def _block(self, size: int) -> Array:
        """The file as blocks of so many words, one beginning at each word."""
        found = self._blocks.get(size)
        if found is None:
            memory = self._segment.memory
            count = len(memory) // 8 - size + 1
            found = self._blocks[size] = np.ndarray((count,), f"V{8 * size}", memory, strides=(8,))
        return found


def _texts(buffer: Any, places: Array, lengths_max: Array, spans: Array, binary: bool) -> Any:
    """Texts out of the buffer in one Arrow array; `spans` say where they are after each of `places`."""
    lengths = spans & 0xFFFFFFFF
    count = len(spans)
    # An array over the whole buffer, with the texts at odd places and anything between them, is
    # never looked at but for those that are taken.
    offsets = np.empty(2 * count + 2, np.int64)
    offsets[0] = 0
    ends = (spans >> 32) + lengths
    if (ends > lengths_max).any():
        raise _TornRead
    ends += places
    np.subtract(ends, lengths, out=offsets[1:-1:2])
    offsets[2:-1:2] = ends
    offsets[-1] = offsets[-2]
    kind = pa.large_binary() if binary else pa.large_string()
    array = pa.Array.from_buffers(kind, 2 * count + 1, [None, pa.py_buffer(offsets), buffer])
    return pc.call_function("array_take", [array, _odd(count)], _UNCHECKED)
