"""The bytes that arrangements take, measured on samples of their rows.

An object that several hold (a string in the rows of three arrangements) counts in parts: its
size divided by its reference count. Small integers and other objects that live anyway have
so many references that they count for nothing. Sizes are rounded up as the allocator does.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

from dataflow.state.arrangement import Arrangement
from dataflow.state.ordered_bag import OrderedBag
from dataflow.state.sorted_rows import OrderedRows, Tie

SAMPLE_KEYS, SAMPLE_KEYS_FAR = 128, 16
SAMPLE_ITEMS, SAMPLE_ITEMS_FAR, SAMPLE_ITEMS_MIN = 512, 64, 8
"""Of a longer list, or a key with more rows, only some are looked at: the more keys, the fewer of each; fewer far from the limit."""
FEW_KEYS = 16
"""With no more keys than this, how many rows they have counts too."""
INDEX_BYTES, MARK_BYTES = 45, 50
"""What a key takes in a dictionary and in a set, on average. Their real tables double at once: to evict
against that would throw out thousands of keys because of one, and free nothing of the table.
"""
POINTER_BYTES = 8
"""What a value that is there anyway takes in a list."""
GROWTH_NEAR, GROWTH_FAR = 0.1, 1.0
"""A sample is taken anew when the number of keys, or rows of few keys, has changed by this part: near the limit, and far from it."""
FORGOTTEN_NEAR, FORGOTTEN_FAR = 4, 1
"""So many samples are taken anew after each check of the limit: what others hold of an object changes its share."""


def _share(value: object, held: int) -> float:
    """The object's own bytes that one holder answers for; `held` references are the caller's own."""
    size = sys.getsizeof(value)
    references = sys.getrefcount(value) - held - 1
    return (size + 15 & ~15) / max(references, 1)


def deep_bytes(value: Any, held: int = 2, items: int = SAMPLE_ITEMS) -> float:
    """The bytes of an index entry with everything in it; of what is in a list or dictionary, `items` are looked at."""
    total = _share(value, held + 1)
    if isinstance(value, tuple | list):
        step = len(value) // (items if isinstance(value, list) else SAMPLE_ITEMS) or 1  # the columns of a row differ
        inside = 0.0
        for each in islice(value, 0, None, step):
            inside += deep_bytes(each, 2, items)
        total += inside if step == 1 else inside * len(value) / -(-len(value) // step)
    elif isinstance(value, dict):
        step = len(value) // items or 1
        inside = 0.0
        for key, each in islice(value.items(), 0, None, step):
            inside += deep_bytes(key, 3, items) + deep_bytes(each, 3, items)
        total += inside if step == 1 else inside * len(value) / -(-len(value) // step)
        if isinstance(value, OrderedRows):
            for each in value.orders.values():
                total += deep_bytes(each.blocks, 2, items) + deep_bytes(each.starts, 2, items)
    elif isinstance(value, Tie):
        total += deep_bytes(value.row, 2, items)
    elif isinstance(value, OrderedBag):
        total += deep_bytes(value.counts, 2, items) + POINTER_BYTES * len(value.counts)
    return total


class Meter:
    """Remembers the mean size of each arrangement's entries."""

    def __init__(self) -> None:
        self._means: dict[int, tuple[int, float]] = {}
        self._is_near = True

    def bytes_of(self, arrangement: Arrangement) -> int:
        count = len(arrangement.index)
        # Touched keys are forgotten once they are published; an eviction only adds to them until then.
        return int(count * (self.mean(arrangement) + INDEX_BYTES) + len(arrangement.referenced) * MARK_BYTES)

    def mean(self, arrangement: Arrangement) -> float:
        """Bytes of one key with its rows."""
        count = len(arrangement.index)
        if not count:
            return 0.0
        size = count
        if count <= FEW_KEYS:
            size += sum(len(value) for value in arrangement.index.values())
        measured, mean = self._means.get(id(arrangement), (0, 0.0))
        if abs(size - measured) > (GROWTH_NEAR if self._is_near else GROWTH_FAR) * measured:
            mean = self._measure(arrangement, count)
            self._means.pop(id(arrangement), None)
            self._means[id(arrangement)] = (size, mean)
        return mean

    def begin_check(self, is_near: bool) -> None:
        """Some arrangements are measured anew, more of them where the limit `is_near`: sizes have to be right only there."""
        if is_near and not self._is_near:
            self._means.clear()
        self._is_near = is_near
        for oldest in list(islice(self._means, FORGOTTEN_NEAR if is_near else FORGOTTEN_FAR)):
            del self._means[oldest]

    def _measure(self, arrangement: Arrangement, count: int) -> float:
        total, sampled = 0.0, 0
        keys, items_max = (SAMPLE_KEYS, SAMPLE_ITEMS) if self._is_near else (SAMPLE_KEYS_FAR, SAMPLE_ITEMS_FAR)
        items = max(SAMPLE_ITEMS_MIN, items_max // count)
        for key in list(islice(arrangement.index, 0, None, max(1, count // keys))):
            total += deep_bytes(key, 3) + deep_bytes(arrangement.index[key], 1, items)
            sampled += 1
        return total / sampled
