"""ORDER BY, compiled: rows sorted by the values of its items, in slices, equal rows as they came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from backend.execution.answering.sorting import sort_rows
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Expression
from dataflow.functions import is_volatile
from dataflow.plan.node import Order
from dataflow.values.comparison import sort_key
from dataflow.values.types import Row, Value

T = TypeVar("T")
Pair = tuple[Row, Row]
"""(the row that ORDER BY reads, the output row)"""


class Sorter:
    """ORDER BY as a few stable sorts, the last item first. An output that is left to chance is sorted by as it was drawn."""

    def __init__(self, items: Sequence[Order], outputs: Sequence[Expression] = ()) -> None:
        self._passes = [
            (compile_scalar(item.expression), sort_key(item.expression.type), item.descending) for item in reversed(items)
        ]
        volatile = [is_volatile(item.expression) for item in reversed(items)]
        self._places = [
            outputs.index(item.expression) if drawn and item.expression in outputs else None
            for item, drawn in zip(reversed(items), volatile)
        ]
        self.reads_outputs = any(place is not None for place in self._places)
        self.is_fixed = not any(drawn and place is None for place, drawn in zip(self._places, volatile))
        """Sorted again, rows come in the same order."""

    def sort(self, pairs: list[Pair], parameters: Sequence[Value]) -> None:
        for (value, key, descending), place in zip(self._passes, self._places):
            if place is None:
                sort_rows(pairs, lambda pair: key(value(pair[0], parameters)), descending)  # noqa: B023
            else:
                sort_rows(pairs, lambda pair: key(pair[1][place]), descending)  # noqa: B023

    def sort_by(self, found: list[T], row_of: Callable[[T], Row], parameters: Sequence[Value]) -> None:
        """Sort what has no outputs yet by the row that each has."""
        for value, key, descending in self._passes:
            sort_rows(found, lambda each: key(value(row_of(each), parameters)), descending)  # noqa: B023
