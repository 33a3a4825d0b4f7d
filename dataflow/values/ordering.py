"""Total orders: sort keys for values of every type, NULL first, reversed for DESC.

`dataflow.values.comparison` has the order of values; what is equal in ORDER BY falls by the whole row, so
that no order depends on how rows arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dataflow.expressions.source import FunctionSource, RowColumns
from dataflow.plan.node import Order
from dataflow.values.comparison import Descending, extreme_key, order_key
from dataflow.values.types import NUMBERS, TEMPORALS, Kind, Row, SqlType, Value


def entry_key(kind: SqlType) -> Callable[[Any], tuple[Any, Any]] | None:
    """(key, value) of a value, ordered as MIN and MAX order it; None if that is the value."""
    key = extreme_key(kind)
    return None if key is None else lambda value: (key(value), value)


def order_source(code: FunctionSource, order: Order, columns: Mapping[int, str]) -> str:
    """Source of the sort key of one ORDER BY item."""
    value = code.fresh("o")
    kind, key = order.expression.type, order_key(order.expression.type)
    source = code.value(order.expression, columns)
    keyed = value if key is None else f"{code.constant(key)}({value})"
    if not order.descending:
        return f"((False, 0) if ({value} := {source}) is None else (True, {keyed}))"
    if key is None and kind.kind in (NUMBERS | TEMPORALS) - {Kind.DECIMAL}:
        return f"((True, 0) if ({value} := {source}) is None else (False, -{value}))"
    return f"((True, 0) if ({value} := {source}) is None else (False, {code.constant(Descending)}({keyed})))"


class _Above:
    """Greater than every key part: ends a range after all rows that begin with a prefix."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


ABOVE = _Above()


Bound = tuple[tuple[Any, ...], bool]
"""One end of a range: keys of the first columns of an order, None for NULL, and whether it is after them."""


def bound_keys(values: Sequence[Value], types: Sequence[SqlType]) -> tuple[Any, ...]:
    """Values of the first columns of an order as its bounds have them."""
    parts: list[Any] = []
    for value, kind in zip(values, types):
        key = order_key(kind)
        parts.append(value if value is None or key is None else key(value))
    return tuple(parts)


def range_bound(bound: Bound | None) -> tuple[Any, ...] | None:
    """The sort key just before, or just after, all rows whose first order columns have these keys."""
    if bound is None:
        return None
    keys, after = bound
    parts = [(False, 0) if key is None else (True, key) for key in keys]
    return (*parts, ABOVE) if after else tuple(parts)


def whole_row_key(row: Row) -> tuple[tuple[bool, Value], ...]:
    """Orders rows of one node, NULLs first; what decides between ties."""
    return tuple([(False, 0) if value is None else (True, value) for value in row])


def sort_function(order: Sequence[Order], tie: Callable[[Row], Any] = whole_row_key) -> Callable[..., Any]:
    """The total sort key of a row: `order`, then the row itself, as `tie` has it. Parameters may be given after the row."""
    code = FunctionSource("sort_key", "row, p=()")
    columns = RowColumns()
    parts = [order_source(code, each, columns) for each in order]
    code.line(f"return ({', '.join([*parts, code.constant(tie) + '(row)'])},)")
    return code.build()
