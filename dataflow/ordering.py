"""Total orders: sort keys for values of every type, NULL first, reversed for DESC.

Texts order by collation, ENUM values by their position; what is equal in ORDER BY falls by
the whole row, so that no order depends on how rows arrived.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from functools import total_ordering
from typing import Any

from dataflow.node import Order
from dataflow.source import Source, text_key
from dataflow.types import NUMBERS, TEMPORALS, Kind, Row, SqlType, Value


@total_ordering
class Descending:
    """A key that orders the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __hash__(self) -> int:
        return hash(self.key)


def value_key(kind: SqlType) -> Callable[[Any], Any] | None:
    """The key by which non-NULL values of a type are ordered, or None if it is the value."""
    if kind.kind is Kind.ENUM:
        positions = {member: position for position, member in enumerate(kind.members, 1)}
        return lambda value: positions.get(value, 0)
    return text_key(kind)


def entry_key(kind: SqlType) -> Callable[[Any], tuple[Any, Any]] | None:
    """(key, value) of a value, ordered by the type and then by the value; None if that is the value."""
    key = value_key(kind)
    return None if key is None else lambda value: (key(value), value)


def order_key(code: Source, order: Order, columns: Mapping[int, str]) -> str:
    """Source of the sort key of one ORDER BY item."""
    value = code.fresh("o")
    kind, key = order.expression.type, value_key(order.expression.type)
    source = code.value(order.expression, columns)
    keyed = value if key is None else f"{code.constant(key)}({value})"
    if not order.descending:
        return f"((False, 0) if ({value} := {source}) is None else (True, {keyed}))"
    if key is None and kind.kind in (NUMBERS | TEMPORALS) - {Kind.DECIMAL}:
        return f"((True, 0) if ({value} := {source}) is None else (False, -{value}))"
    return f"((True, 0) if ({value} := {source}) is None else (False, {code.constant(Descending)}({keyed})))"


@total_ordering
class _Above:
    """Greater than every key part: ends a range after all rows that begin with a prefix."""

    def __lt__(self, other: object) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Above)


ABOVE = _Above()


def range_bound(values: Sequence[Value], types: Sequence[SqlType], *, after: bool) -> tuple[Any, ...]:
    """The sort key just before, or just after, all rows whose first order columns have `values`."""
    parts: list[Any] = []
    for value, kind in zip(values, types, strict=True):
        key = value_key(kind)
        parts.append((False, 0) if value is None else (True, value if key is None else key(value)))
    return (*parts, ABOVE) if after else tuple(parts)


def whole_row_key(row: Row) -> tuple[tuple[bool, Value], ...]:
    """Orders rows of one node, NULLs first; what decides between ties."""
    return tuple([(False, 0) if value is None else (True, value) for value in row])


def sort_function(order: Sequence[Order]) -> Callable[[Row], Any]:
    """The total sort key of a row: `order`, then the row itself."""
    code = Source("sort_key", "row")
    columns = _RowColumns()
    parts = [order_key(code, each, columns) for each in order]
    code.line(f"return ({', '.join([*parts, code.constant(whole_row_key) + '(row)'])},)")
    return code.build()


class OrderedRows(dict[Row, int]):
    """A bag that also has its rows in order; `sort_key` must be total."""

    __slots__ = ("entries",)

    def __init__(self, bag: Mapping[Row, int], sort_key: Callable[[Row], Any]) -> None:
        super().__init__(bag)
        self.entries: list[tuple[Any, Row]] = sorted((sort_key(row), row) for row in bag)

    def place(self, entry: tuple[Any, Row]) -> None:
        insort(self.entries, entry)

    def displace(self, entry: tuple[Any, Row]) -> None:
        del self.entries[bisect_left(self.entries, entry)]

    def between(self, low: Any, high: Any) -> list[Row]:
        """The rows with low ≤ key < high, in order, each as often as it is there."""
        start = 0 if low is None else bisect_left(self.entries, (low,))
        end = len(self.entries) if high is None else bisect_left(self.entries, (high,))
        return [row for _, row in self.entries[start:end] for _ in range(self[row])]


class _RowColumns(dict[int, str]):
    """Reads any position from the variable `row`."""

    def __missing__(self, position: int) -> str:
        return f"row[{position}]"
