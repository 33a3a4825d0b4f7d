"""The first rows in an order, found by column: of rows that come bit by bit, those that may be among the first so many.

Rows that are equal in all of the order's items stay in the order in which they came. Where only the first items of an order
have an exact form by column, all rows are kept that those items do not tell from the last of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dataflow.columns.expressions import Columns, Evaluate, compiled
from dataflow.columns.vector import Array, GaveUp, NumberVector, is_number
from dataflow.plan.node import Order

PENDING_ROWS = 16_384
UNDECIDED_ROWS_MAX = 200_000


class FirstRows:
    """`items` are the first ones of an order, all of them if it `is_whole`."""

    def __init__(self, items: Sequence[tuple[Evaluate, bool]], is_whole: bool, limit: int) -> None:
        self._items = items
        self._is_whole = is_whole
        self._limit = limit
        self._keys: list[list[Array]] = [[] for _ in range(2 * len(items))]
        self._rows: list[Array] = []
        self._count = 0
        self._last: tuple[int, int] | None = None

    @classmethod
    def of(cls, order: Sequence[Order], limit: int) -> FirstRows | None:
        """None if not even the first item has an exact form by column."""
        items = []
        for each in order:
            found = compiled(each.expression) if is_number(each.expression.type) else None
            if found is None:
                break
            items.append((found, each.descending))
        return cls(items, len(items) == len(order), limit) if items else None

    def add(self, columns: Columns, rows: Array) -> None:
        """Take rows in, in their order: numbers that name them, and their columns."""
        keys = [part for evaluate, descending in self._items for part in _parts(evaluate(columns), columns.count, descending)]
        places = np.arange(columns.count)
        if self._last is not None:  # the rows held are enough, and these come after them
            flag, value = self._last
            is_before = (keys[0] < flag) | ((keys[0] == flag) & (keys[1] <= value))
            places = np.flatnonzero(is_before)
        for held, new in zip(self._keys, keys):
            held.append(new[places])
        self._rows.append(rows[places])
        self._count += len(places)
        if self._count > PENDING_ROWS + 2 * self._limit:
            self._cut()

    def rows(self) -> Array:
        """Those that may be among the first, in the order in which they came."""
        self._cut()
        return np.concatenate(self._rows) if self._rows else np.zeros(0, np.int64)

    def _cut(self) -> None:
        if self._count <= self._limit:
            return
        keys = [np.concatenate(each) for each in self._keys]
        order = np.lexsort(keys[::-1])
        kept = order[: self._limit]
        last = kept[-1]
        if not self._is_whole:
            is_same = np.logical_and.reduce([each == each[last] for each in keys])
            kept = np.union1d(kept, np.flatnonzero(is_same))
            if len(kept) > UNDECIDED_ROWS_MAX + self._limit:
                raise GaveUp("too many rows that only the rest of the order tells apart")
        kept = np.sort(kept)
        self._last = int(keys[0][last]), int(keys[1][last])
        self._keys = [[each[kept]] for each in keys]
        self._rows = [np.concatenate(self._rows)[kept]]
        self._count = len(kept)


def _parts(vector: object, count: int, descending: bool) -> tuple[Array, Array]:
    """Two numbers that order the values: NULLs come first, or last if it is descending."""
    assert isinstance(vector, NumberVector)
    values = np.broadcast_to(vector.values, (count,))
    missing = np.zeros(count, np.int8) if vector.missing is None else vector.missing.astype(np.int8)
    return (missing, ~values) if descending else (1 - missing, values)
