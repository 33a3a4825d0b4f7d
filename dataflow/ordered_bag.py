"""A bag whose values can be had in their order: what extremes, texts and documents of a group are made from."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from dataflow.sorting import sort_in_pieces


class OrderedBag:
    """Values with counts; sorted from the first time that their order is asked for."""

    __slots__ = ("_sorted", "counts")

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        self._sorted: list[Any] | None = None

    def add(self, entry: Any, weight: int) -> None:
        old = self.counts.get(entry, 0)
        if old + weight:
            self.counts[entry] = old + weight
            if not old and self._sorted is not None:
                insort(self._sorted, entry)
        else:
            self.counts.pop(entry, None)
            if old and self._sorted is not None:
                del self._sorted[bisect_left(self._sorted, entry)]

    @property
    def entries(self) -> list[Any]:
        if self._sorted is None:
            self._sorted = list(self.counts)
            sort_in_pieces(self._sorted)
        return self._sorted
