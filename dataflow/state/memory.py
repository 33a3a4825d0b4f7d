"""How many bytes arrangements take: measured on samples of what they really hold.

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

SAMPLE_KEYS = 128
SAMPLE_ITEMS, SAMPLE_ITEMS_MIN = 512, 8
"""Of a longer list, or a key with more rows, only some are looked at: the more keys, the fewer of each."""
FEW_KEYS = 16
"""With no more keys than this, how many rows they have counts too."""
INDEX_BYTES, MARK_BYTES = 45, 50
"""What a key takes in a dictionary and in a set, on average. Their real tables double at once: to evict
against that would throw out thousands of keys because of one, and free nothing of the table.
"""
POINTER_BYTES = 8
"""What a value that is there anyway takes in a list."""
_GROWTH = 0.1
"""A sample is taken anew when the number of keys, or rows of few keys, has changed by this part."""
FORGOTTEN = 4
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
        if abs(size - measured) > _GROWTH * measured:
            mean = self._measure(arrangement, count)
            self._means.pop(id(arrangement), None)
            self._means[id(arrangement)] = (size, mean)
        return mean

    def forget_oldest(self) -> None:
        """Measure some arrangements anew."""
        for oldest in list(islice(self._means, FORGOTTEN)):
            del self._means[oldest]

    def _measure(self, arrangement: Arrangement, count: int) -> float:
        total, sampled = 0.0, 0
        items = max(SAMPLE_ITEMS_MIN, SAMPLE_ITEMS // count)
        for key in list(islice(arrangement.index, 0, None, max(1, count // SAMPLE_KEYS))):
            total += deep_bytes(key, 3) + deep_bytes(arrangement.index[key], 1, items)
            sampled += 1
        return total / sampled
