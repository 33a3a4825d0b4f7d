"""Values with counts, in order: what MIN, MAX and the aggregates that list their values keep of a group.

The order is kept in blocks of some hundred values from the first time that it is asked for. A change finds its block by
bisection and moves no more than what follows it there, so it costs about the same for a million values as for a thousand.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import chain
from typing import Any

from dataflow.sorting import sort_in_pieces

BLOCK_LENGTH = 512
"""A block is split when it is twice as long."""


class OrderedBag:
    """`counts` are never 0. Blocks are never empty, and each begins with its entry of `_firsts`."""

    __slots__ = ("_blocks", "_firsts", "counts")

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        self._blocks: list[list[Any]] | None = None
        self._firsts: list[Any] = []

    def add(self, entry: Any, weight: int) -> None:
        old = self.counts.get(entry, 0)
        if old + weight:
            self.counts[entry] = old + weight
            if not old and self._blocks is not None:
                self._insert(self._blocks, entry)
        else:
            self.counts.pop(entry, None)
            if old and self._blocks is not None:
                self._remove(self._blocks, entry)

    @property
    def first(self) -> Any:
        """The least value of a bag that has some."""
        return self._ordered()[0][0]

    @property
    def last(self) -> Any:
        return self._ordered()[-1][-1]

    @property
    def entries(self) -> Iterable[Any]:
        """All values in order."""
        return chain.from_iterable(self._ordered())

    def _ordered(self) -> list[list[Any]]:
        if self._blocks is None:
            values = list(self.counts)
            sort_in_pieces(values)
            self._blocks = [values[start : start + BLOCK_LENGTH] for start in range(0, len(values), BLOCK_LENGTH)]
            self._firsts = [block[0] for block in self._blocks]
        return self._blocks

    def _insert(self, blocks: list[list[Any]], entry: Any) -> None:
        if not blocks:
            blocks.append([entry])
            self._firsts.append(entry)
            return
        place = max(bisect_right(self._firsts, entry) - 1, 0)
        block = blocks[place]
        insort(block, entry)
        self._firsts[place] = block[0]
        if len(block) >= 2 * BLOCK_LENGTH:
            blocks.insert(place + 1, block[BLOCK_LENGTH:])
            self._firsts.insert(place + 1, block[BLOCK_LENGTH])
            del block[BLOCK_LENGTH:]

    def _remove(self, blocks: list[list[Any]], entry: Any) -> None:
        place = bisect_right(self._firsts, entry) - 1
        block = blocks[place]
        del block[bisect_left(block, entry)]
        if block:
            self._firsts[place] = block[0]
        else:
            del blocks[place], self._firsts[place]
