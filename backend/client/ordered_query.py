"""The rows of a key by range: of a view whose SELECT has an ORDER BY of plain columns, and no LIMIT.

The worker keeps the rows of each key in that order, in a view of its own beside the one for
lookups. Where it cannot (without a key, with several workers), all rows are read and cut here.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Literal, get_args

from backend.client.key_values import key_converter
from backend.client.values import Rows, row_converter, to_value
from backend.execution.answering.ranges import AFTER_NULLS, order_of
from backend.execution.evaluation.lookup_value import UNUSABLE, lookup_value
from backend.views.view_definition import ViewDefinition
from backend.views.view_range import Range
from controller.sql.plan import Query
from dataflow.errors import Unsupported
from dataflow.expressions.compile import compile_row
from dataflow.expressions.expression import Column, Parameter
from dataflow.plan.node import Columns, Order
from dataflow.state.sorted_rows import OrderedRows, entry_function
from dataflow.values.ordering import bound_keys, range_bound
from dataflow.values.types import DATES, NULL, Kind, Row, SqlType, Value

Inclusive = Literal["left", "right", "both", "neither"]


class OrderedQuery:
    """`definition` is the ordered view. Raises Unsupported if the query has no order to read ranges of."""

    def __init__(self, query: Query, key: Columns, definition: ViewDefinition) -> None:
        order, self.descending = order_of(query, key)
        if not order or query.limit is not None or query.distinct or query.default is not None:
            raise Unsupported("ranges of a view without an ORDER BY of columns in one direction, or with a LIMIT")
        assert definition.order == order
        self.definition = definition
        self._types = [definition.types[column] for column in order]
        outputs = query.outputs
        self._project = compile_row(outputs)
        self._convert = row_converter([each.type for each in outputs])
        self._entry_of = entry_function(Order(Column(each, definition.types[each])) for each in order)

    def part(self, low: Any, high: Any, limit: int | None, descending: bool | None, inclusive: Inclusive) -> Range:
        """From `low` to `high`: values of the first columns of the order; a bound leaves NULLs out."""
        if limit is not None and index(limit) < 0:
            raise ValueError("a limit below zero")
        if inclusive not in get_args(Inclusive):
            raise ValueError(f"inclusive is one of {', '.join(get_args(Inclusive))}")
        lower = None if low is None else (self._keys(low), inclusive in ("right", "neither"))
        upper = None if high is None else (self._keys(high), inclusive in ("right", "both"))
        if lower is None and upper is not None:
            lower = AFTER_NULLS
        return Range(lower, upper, None if limit is None else index(limit), self.descending if descending is None else descending)

    def _keys(self, given: Any) -> tuple[Any, ...]:
        values = given if isinstance(given, tuple) else (given,)
        if not 0 < len(values) <= len(self._types):
            raise ValueError(f"the view is ordered by {len(self._types)} column(s), the bound has {len(values)}")
        return bound_keys([_value(each, kind) for each, kind in zip(values, self._types)], self._types)

    def rows(self, payload: bytes) -> Rows:
        """The query's rows, from the encoded ones of the view."""
        return self.finished(self.definition.decode(payload))

    def finished(self, rows: Sequence[Row]) -> Rows:
        """The query's rows, from those of the view."""
        found = [self._project(row, ()) for row in rows]
        return found if self._convert is None else self._convert(found)

    def cut(self, rows: Sequence[Row], part: Range) -> list[Row]:
        """What of all rows of a key is in the range."""
        bag: dict[Row, int] = {}
        for row in rows:
            bag[row] = bag.get(row, 0) + 1
        order = self.definition.order
        ordered = OrderedRows(bag, {order: self._entry_of})
        return ordered.between(order, range_bound(part.low), range_bound(part.high), part.limit, part.descending)


def _value(given: Any, kind: SqlType) -> Value:
    """A bound as a value of the column; ValueError if it cannot be compared with one as such."""
    found: Any = UNUSABLE
    if kind.kind in DATES or kind.kind is Kind.TIME:
        found = key_converter(kind)(given)
    elif kind.kind is Kind.ENUM:
        found = given if given in kind.members else UNUSABLE
    else:
        if kind.kind is Kind.DECIMAL and isinstance(given, str):  # as a text it would be compared as a DOUBLE
            given = key_converter(kind)(given)
        lookup = lookup_value(Column(0, kind), Parameter(0, NULL), equality=False)
        found = UNUSABLE if lookup is None else lookup(to_value(given))
    if found is UNUSABLE or found is None:
        raise ValueError(f"{given!r} is no bound of a {kind.kind.value} column")
    return found  # type: ignore[no-any-return]
