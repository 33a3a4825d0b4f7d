"""Columns of many keys at once: numpy looks them up and takes them out of the entries' cells.

For views with integer keys and at most one row for each key. Where that does not hold the
caller has to go row by row. Who makes something else of rows than columns gets the entries.

Entries are copied whole, all with as many bytes as the largest has, because what an entry costs
is the way to it: columns are then cut out of the copy. What lies behind a smaller entry is
copied along and never looked at. Where one is very large, only what stands before the rows is
copied so, and texts for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from backend.shared_memory.entry import cell_code
from backend.shared_memory.gathering import spans, taken
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
from dataflow.values.types import BLOBS, SqlType

TRIES_MAX = 20

WORDS_MAX = SLACK_BYTES // 8
"""The texts of larger entries are copied one by one."""

# Arrays without dimensions are the quickest constants.
_LENGTH_BITS, _LENGTH_MASK = np.array(LENGTH_BITS, np.uint64), np.array(LENGTH_MASK, np.uint64)
_ONE_ROW = np.array(1)
"""The count of rows, and no key follows them: it is a number."""
_ENDS_AT, _BEGINS_AT = np.array(32), np.array(0xFFFFFFFF)
_HEADER_WORDS = HEADER_BYTES // 8

T = TypeVar("T")


@lru_cache(maxsize=64)
def _places(count: int, head: int, size: int) -> Array:
    """Where rows begin in so many entries of `size` words, in bytes."""
    return np.arange(8 * head, 8 * (head + count * size), 8 * size)


@lru_cache(maxsize=64)
def ones(count: int) -> Array:
    """So many times True; not to be changed."""
    made = np.ones(count, bool)
    made.flags.writeable = False
    return made


def _gather(buffer: Any, places: Array, cells: list[Any], numbers: list[int], kind: Any) -> None:
    """Put the texts of these columns in the place of where they are; all at once, which takes fewer steps."""
    count = len(places)
    offsets = spans(count * len(numbers))
    for number, pieces in zip(numbers, offsets[1:-1].reshape(len(numbers), count, 2)):
        np.add(cells[number] & _BEGINS_AT, places, out=pieces[:, 0])
        np.add(cells[number] >> _ENDS_AT, places, out=pieces[:, 1])
    found = taken(buffer, offsets, kind)
    for start, number in zip(range(0, count * len(numbers), count or 1), numbers):
        cells[number] = found.slice(start, count)


class _TornRead(Exception):
    """The writer has come back to what was being read."""


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """The row of each key that has one, column by column, in the order of the keys.

    `known` says which keys were found at all; `present` which of them have a row, and these
    are the rows of `cells`: an array for each column (texts as Arrow arrays). `nulls` has a
    bit for each column of each row; None if there is no NULL.
    """

    known: Array
    present: Array
    cells: list[Any]
    nulls: Array | None


@dataclass(frozen=True, slots=True)
class Entries:
    """Copies of the entries of those keys that have a row, in the order of the keys, for the caller to change.

    `words` has an entry in each row, as `entry` lays them out, with `width` cells; `places` says of
    each where its rows begin, in bytes from the start of all. None of it is there unless `is_known`: all keys were found.
    """

    is_known: bool
    words: Array
    places: Array
    width: int


class _Mapped:
    """What reading takes of one file."""

    __slots__ = ("blocks", "buffer", "has_cells", "indexes", "numbers", "segment", "shift", "touched", "words")

    def __init__(self, segment: Segment, width: int) -> None:
        self.segment = segment
        self.shift = segment.shift
        self.indexes = (segment.slots_array(0), segment.slots_array(1))
        self.touched = segment.touched_array()[::2]
        self.buffer = pa.py_buffer(segment.memory)
        self.numbers = segment.array(np.int64)
        self.blocks: dict[int, Array] = {}
        self.words = segment.words
        self.has_cells = segment.words[WIDTH] == width

    def block(self, size: int) -> Array:
        """The file as blocks of so many words, one beginning at each word."""
        found = self.blocks.get(size)
        if found is None:
            memory = self.segment.memory
            count = len(memory) // 8 - size + 1
            found = self.blocks[size] = np.ndarray((count,), f"V{8 * size}", memory, strides=(8,))
        return found


class ColumnReader:
    """Reads the columns of a view with these types through `reader`."""

    def __init__(self, reader: SharedViewReader, types: Sequence[SqlType]) -> None:
        assert reader.is_exact
        self._reader = reader
        self._codes = [cell_code(each) for each in types]
        self._texts = [pa.large_binary() if each.kind in BLOBS else pa.large_string() for each in types]
        self._mapped = _Mapped(reader.segment, len(self._codes))

    def read(self, keys: Array, wanted: Sequence[int] | None = None) -> EntryColumns | None:
        """The rows of these keys, int64, as of one epoch; None if it has to be done row by row.

        `wanted` are the columns to take, all if it is not given.
        """
        tags = tags_of(keys)
        chosen = range(len(self._codes)) if wanted is None else wanted
        return self._tried(lambda mapped: self._columns(mapped, tags, chosen))

    def entries(self, keys: Array, bytes_max: int) -> Entries | None:
        """The entries of these keys, int64, as of one epoch; None if they are larger, or it has to be done row by row."""
        tags = tags_of(keys)
        return self._tried(lambda mapped: self._entries(mapped, tags, bytes_max))

    def _tried(self, read: Callable[[_Mapped], T | None]) -> T | None:
        for _ in range(TRIES_MAX):
            mapped, segment = self._mapped, self._reader.segment
            if mapped.segment is not segment:
                mapped = self._mapped = _Mapped(segment, len(self._codes))
            if not mapped.has_cells or self._reader.is_gone:
                return None
            try:
                return read(mapped)
            except _TornRead:
                if self._reader.is_gone:
                    return None
        return None

    def _entries(self, mapped: _Mapped, tags: Array, bytes_max: int) -> Entries | None:
        words = mapped.words
        epoch = words[EPOCH]
        starts, longest, known = _located(mapped, tags, epoch)
        width = len(self._codes)
        if known is not None and not known.all():
            if not self._reader.is_valid(words, epoch):
                raise _TornRead
            return Entries(False, starts, starts, width)
        head = width + 2
        size = head + (longest + 7 >> 3)
        if size > WORDS_MAX or 8 * size * len(tags) > bytes_max:
            return None
        entries = mapped.block(size)[starts - head].view(np.int64).reshape(-1, size)
        if not self._reader.is_valid(words, epoch):
            raise _TornRead
        counts = entries[:, width + 1]
        if np.count_nonzero(counts != _ONE_ROW):
            if (counts > _ONE_ROW).any():
                return None
            entries = entries[counts == _ONE_ROW]
        return Entries(True, entries, _places(len(entries), head, size), width)

    def _columns(self, mapped: _Mapped, tags: Array, wanted: Sequence[int]) -> EntryColumns | None:
        words = mapped.words
        epoch = words[EPOCH]
        starts, longest, found = _located(mapped, tags, epoch)
        known = ones(len(tags)) if found is None else found
        width, codes = len(self._codes), self._codes
        head = width + 2
        starts -= head
        size = head + (longest + 7 >> 3)
        copied = size <= WORDS_MAX and "s" in [codes[place] for place in wanted]
        if copied:
            entries = mapped.block(size)[starts].view(np.int64).reshape(-1, size)
            cells = [entries[:, place] for place in wanted]
            nulls, counts = entries[:, width], entries[:, width + 1]
            places, buffer = _places(len(entries), head, size), pa.py_buffer(entries)
        else:
            cells = [mapped.numbers[starts + place] for place in wanted]
            tails = mapped.block(2)[starts + width].view(np.int64).reshape(-1, 2)
            nulls, counts = tails[:, 0], tails[:, 1]
            places, buffer = starts + head << 3, mapped.buffer
        if not self._reader.is_valid(words, epoch):
            raise _TornRead
        # From here on what has been copied can be relied on, and so can the places of texts.
        has_nulls, absent = np.count_nonzero(nulls), counts != _ONE_ROW
        present = known
        if np.count_nonzero(absent):
            if (counts > _ONE_ROW).any():
                return None
            present = ~absent
            places, nulls = places[present], nulls[present]
            cells = [each[present] for each in cells]
        texts: dict[Any, list[int]] = {}
        for number, place in enumerate(wanted):
            if (code := codes[place]) == "s":
                texts.setdefault(self._texts[place], []).append(number)
            elif code != "q":
                cells[number] = cells[number].view(np.float64 if code == "d" else np.uint64)
        for kind, numbers in texts.items():
            _gather(buffer, places, cells, numbers, kind)
        if not copied and not self._reader.is_valid(words, epoch):
            raise _TornRead
        return EntryColumns(known, present, cells, nulls if has_nulls else None)


def joined_entries(found: Sequence[tuple[Array, Entries]], count: int, bytes_max: int) -> Entries | None:
    """The entries of keys of several files, each with the places of its keys, of which there are so many.

    None if they are too large, or a key has no row: it is not said which.
    """
    width = found[0][1].width
    if not all(each.is_known for _, each in found):
        return Entries(False, np.empty(0, np.int64), np.empty(0, np.int64), width)
    size = max(each.words.shape[1] for _, each in found)
    if 8 * size * count > bytes_max or any(len(each.words) < len(own) for own, each in found):
        return None
    words = np.zeros((count, size), np.int64)
    for own, each in found:
        words[own, : each.words.shape[1]] = each.words
    return Entries(True, words, _places(count, width + 2, size), width)


def _located(mapped: _Mapped, tags: Array, epoch: int) -> tuple[Array, int, Array | None]:
    """Where the rows of each key begin, in words, how many bytes the longest have, and which keys are here (None: all)."""
    slots, locations = find(mapped.indexes[epoch & 1], tags, mapped.shift)
    mapped.touched[slots] = 1
    starts: Array = (locations >> _LENGTH_BITS).view(np.int64)
    longest = int(np.maximum.reduce(locations & _LENGTH_MASK)) if len(tags) else 0
    known = None
    if np.count_nonzero(locations) < len(tags):
        if not mapped.words[COMPLETE]:
            known = locations != 0
        # What was not found is read at the end of the header, which says that there is no row.
        np.maximum(starts, _HEADER_WORDS, out=starts)
    return starts, longest, known
