"""Columns of many keys at once: numpy looks them up and takes them out of the entries' cells.

For views with integer keys and at most one row for each key. Where that does not hold the
caller has to go row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from backend.shared_memory.entry import cell_code
from backend.shared_memory.probing import Array, find, tags_of
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import (
    COMPLETE,
    EPOCH,
    HEADER_BYTES,
    LENGTH_BITS,
    LENGTH_MASK,
    WIDTH,
    Segment,
)
from dataflow.types import BLOBS, SqlType

TRIES_MAX = 20

_LENGTH_BITS, _LENGTH_MASK = np.uint64(LENGTH_BITS), np.uint64(LENGTH_MASK)


_HEADER_WORDS = HEADER_BYTES // 8


@lru_cache(maxsize=64)
def _odd(count: int) -> Any:
    return pa.array(np.arange(1, 2 * count, 2))


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
        self._numbers = segment.array(np.int64)
        self._buffer = pa.py_buffer(segment.memory)
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
        starts = (locations >> _LENGTH_BITS).astype(np.int64)
        # What was not found is read at the end of the header, which says that there is no row.
        np.maximum(starts, _HEADER_WORDS, out=starts)
        counts = self._numbers[starts - 1]
        counts &= 0xFFFFFFFF
        present = counts == 1
        if not present.all():
            if (counts > 1).any():
                return None
            starts, locations = starts[present], locations[present]
        known = np.ones(len(tags), bool) if self._words[COMPLETE] else ~missing
        firsts = starts - (2 + len(self._codes))
        cells: list[Any] = []
        for place in wanted:
            code = self._codes[place]
            values = self._numbers[firsts + place]
            if code == "s":
                cells.append(self._texts(starts, locations, values, self._binary[place]))
            elif code == "d":
                cells.append(values.view(np.float64))
            else:
                cells.append(values.view(np.uint64) if code == "Q" else values)
        return Columns(known, present, cells, self._numbers[starts - 2])

    def _texts(self, starts: Array, locations: Array, spans: Array, binary: bool) -> Any:
        """Texts, copied out of the entries into one Arrow array."""
        lengths = spans & 0xFFFFFFFF
        places = spans >> 32
        if (places + lengths > (locations & _LENGTH_MASK).view(np.int64)).any():
            raise _TornRead
        places += starts << 3
        # An array over the whole file, with the texts at odd places and anything between them,
        # is never looked at but for those that are taken.
        count = len(spans)
        offsets = np.zeros(2 * count + 2, np.int64)
        offsets[1:-1:2] = places
        offsets[2:-1:2] = places + lengths
        offsets[-1] = lengths.sum()
        kind = pa.large_binary() if binary else pa.large_string()
        buffers = [None, pa.py_buffer(offsets), self._buffer]
        return pa.Array.from_buffers(kind, 2 * count + 1, buffers).take(_odd(count))
