"""Room for entries: blocks in a few sizes, reused one epoch after they were freed.

Sizes are rounded up by at most a quarter, so that an entry that changes again and again finds
the blocks of its predecessors. Places are counted from the start of the heap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

STEP_BYTES_MIN = 1 << 14


def _rounded(size: int) -> int:
    step = max(16, 1 << max(0, size.bit_length() - 3))
    return -(-size // step) * step


_SMALL = tuple(map(_rounded, range(4096)))
_SMALL_ARRAY = np.array(_SMALL)


def block_size(size: int) -> int:
    """`size`, rounded up to that of a block."""
    return _SMALL[size] if size < 4096 else _rounded(size)


def block_sizes(sizes: Array) -> Array:
    if len(sizes) and sizes.max() >= 4096:
        return np.array([block_size(size) for size in sizes.tolist()])
    blocks: Array = _SMALL_ARRAY[sizes]
    return blocks


def by_size(blocks: Array) -> Iterator[tuple[int, Array]]:
    """Each size that there is, but 0, and which blocks have it."""
    # Sizes are multiples of 16; counting is quicker than sorting while they are not many.
    is_small = len(blocks) and blocks.max() < 1 << 14
    sizes = np.bincount(blocks >> 4).nonzero()[0] << 4 if is_small else np.unique(blocks)
    for size in sizes.tolist():
        if size:
            yield size, (blocks == size).nonzero()[0]


class Heap:
    """`reserve(start, stop)` has to make room in the file; it may raise OSError."""

    def __init__(self, limit_bytes: int, reserve: Callable[[int, int], None]) -> None:
        self._limit_bytes = limit_bytes
        self._reserve = reserve
        self._free: dict[int, list[int]] = {}
        self._freed: list[tuple[int, int]] = []
        self._freed_at_once: list[tuple[list[int], int]] = []
        self.top = 0
        self.reserved_bytes = 0
        self.live_bytes = 0

    def allocate(self, size: int) -> int | None:
        """The place of a block for `size` bytes; None if the heap has reached its limit."""
        size = block_size(size)
        blocks = self._free.get(size)
        if blocks:
            place = blocks.pop()
        else:
            place = self.top
            if place + size > self.reserved_bytes:
                stop = place + max(size, STEP_BYTES_MIN, self.reserved_bytes // 16)
                if stop > self._limit_bytes:
                    return None
                self._reserve(self.reserved_bytes, stop)
                self.reserved_bytes = stop
            self.top = place + size
        self.live_bytes += size
        return place

    def allocate_many(self, size: int, count: int) -> list[int]:
        """The places of blocks that have just this size: fewer than wanted if the heap has reached its limit."""
        free = self._free.get(size, [])
        places = free[-count:]
        del free[-count:]
        end = self.top + size * min(count - len(places), (self._limit_bytes - self.top) // size)
        if end > self.reserved_bytes:
            stop = max(end, self.reserved_bytes + max(STEP_BYTES_MIN, self.reserved_bytes // 16))
            stop = min(stop, self._limit_bytes)
            self._reserve(self.reserved_bytes, stop)
            self.reserved_bytes = stop
        places += range(self.top, end, size)
        self.top = end
        self.live_bytes += size * len(places)
        return places

    def free(self, place: int, size: int) -> None:
        """Give a block back, for use after the next `release`."""
        size = block_size(size)
        self.live_bytes -= size
        self._freed.append((place, size))

    def free_many(self, size: int, places: list[int]) -> None:
        """Give blocks of this size back."""
        self.live_bytes -= size * len(places)
        self._freed_at_once.append((places, size))

    def release(self) -> None:
        """No reader that could see what was freed would believe it any more."""
        for place, size in self._freed:
            self._free.setdefault(size, []).append(place)
        self._freed.clear()
        for places, size in self._freed_at_once:
            self._free.setdefault(size, []).extend(places)
        self._freed_at_once.clear()

    def moved(self, reserve: Callable[[int, int], None]) -> Heap:
        """The same blocks in another file, which has reserved as much."""
        heap = Heap(self._limit_bytes, reserve)
        self.release()
        heap._free = self._free
        heap.top, heap.reserved_bytes, heap.live_bytes = self.top, self.reserved_bytes, self.live_bytes
        return heap
