"""Entries at other places: blocks of a file copied by numpy, many at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from backend.shared_memory.entry import entry_extents
from backend.shared_memory.heap import Heap, block_sizes, by_size
from backend.shared_memory.probing import Array
from backend.shared_memory.segment import LENGTH_BITS, LENGTH_MASK, Segment

COPIED_BYTES_MAX = 16 << 20
"""What is moved in one step."""

# Arrays without dimensions are the quickest constants.
_THREE = np.array(3)
_WORD_BITS, _LENGTH_BITS, _LENGTH_MASK = (np.array(each, np.uint64) for each in (3, LENGTH_BITS, LENGTH_MASK))


def moved_entries(old: Segment, new: Segment, heap: Heap, width: int, exact: bool, locations: Array) -> Array:
    """Copy the entries at these locations of a file into another one, whose heap is empty; where they are there.

    `width` is the number of their cells; they have no keys if these are `exact`.
    """
    words = old.array(np.uint32)
    starts, sizes = entry_extents(words, width, locations)
    rows: Array = (locations >> _LENGTH_BITS << _WORD_BITS).view(np.int64)
    if not exact:
        sizes += words[(rows >> 2) - 1]  # the key behind the rows
    targets = np.zeros(len(starts), np.int64)
    for size, some in by_size(block_sizes(sizes)):
        places = heap.allocate_many(size, len(some))
        assert len(places) == len(some), "less than was there before"
        targets[some] = np.array(places, np.int64) + new.heap_start
        for part in np.array_split(some, 1 + size * len(some) // COPIED_BYTES_MAX):
            copy_blocks(old.memory, starts[part], new.memory, targets[part], size)
    moved: Array = (targets + (rows - starts)).view(np.uint64) >> _WORD_BITS << _LENGTH_BITS
    moved |= locations & _LENGTH_MASK
    return moved


def copy_blocks(source: Any, starts: Array, target: Any, places: Array, size: int) -> None:
    """Copy blocks of `size` bytes from these places of one file to those of another, or the same."""
    _blocks(target, size)[places >> _THREE] = _blocks(source, size)[starts >> _THREE]


def _blocks(file: Any, size: int) -> Array:
    """A file as blocks of so many bytes, one beginning at each word."""
    return np.ndarray(((len(file) - size) // 8 + 1,), _block(size), file, strides=(8,))


@lru_cache(maxsize=256)
def _block(size: int) -> np.dtype[np.void]:
    return np.dtype((np.void, size))
