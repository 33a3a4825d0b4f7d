"""Entries at other places: blocks of a file copied by numpy, many at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from backend.shared_memory.entry import entry_extents
from backend.shared_memory.heap import Heap, block_sizes, by_size
from backend.shared_memory.probing import Array
from backend.shared_memory.segment import LENGTH_BITS, LENGTH_MASK, PROBE_MAX, Segment

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


def placed_entries(old: Segment, new: Segment, live: Array, tags: Array, locations: Array) -> int:
    """Fill both indexes of the new file with what the `live` slots of the old one had; returns how many have found a place.

    In the order of their first slots, each key takes the next free one.
    """
    homes = (tags >> np.uint64(new.shift)).astype(np.int64)
    order = np.argsort(homes, kind="stable")
    homes, tags, locations = homes[order], tags[order], locations[order]
    counted = np.arange(len(homes))
    slots = np.maximum.accumulate(homes - counted) + counted if len(homes) else homes
    near = slots - homes < PROBE_MAX
    if not near.all():
        slots, tags, locations, order = slots[near], tags[near], locations[near], order[near]
    for which in (0, 1):
        pairs = new.index_array(which).reshape(-1, 2)
        pairs[slots, 0], pairs[slots, 1] = tags, locations
    new.touched_array()[2 * slots] = old.touched_array()[2 * live[order]]
    return len(slots)
