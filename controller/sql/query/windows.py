"""Window functions as they are written: functions, named windows, frames."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.sql.expressions.aggregation import read_aggregate
from controller.sql.expressions.operators import AGGREGATES
from controller.sql.query.block import Window
from controller.sql.query.expressions import QueryTranslator
from controller.sql.query.fields import Numbering
from controller.sql.query.frames import read_frame
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.plan.node import AggregateFunction, Order
from dataflow.values.inference import merged_type
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DOUBLE

_RANKS = {
    "row_number": BIGINT_UNSIGNED, "rank": BIGINT_UNSIGNED, "dense_rank": BIGINT_UNSIGNED, "ntile": BIGINT_UNSIGNED,
    "percent_rank": DOUBLE, "cume_dist": DOUBLE,
}  # fmt: skip
_COUNTED = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}
"""Which argument is a number of rows."""
_VALUES = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})


class WindowClauses:
    """The window functions of one query while its clauses are read."""

    def __init__(self, numbering: Numbering, named: list[Any]) -> None:
        self._numbering = numbering
        self._named = {each.name.lower(): each for each in named}
        self.found: list[Window] = []
        self._is_inside = False

    def collect(self, node: Any, translator: QueryTranslator) -> Expression:
        if self._is_inside:
            raise InvalidStatement(Condition.WINDOW_MISPLACED, str(node.this.this) if isinstance(node.this, exp.Anonymous) else node.this.key)
        self._is_inside = True
        try:
            return self._collect(node, translator)
        finally:
            self._is_inside = False

    def _collect(self, node: Any, translator: QueryTranslator) -> Expression:
        partition, order, spec = self._specification(node)
        function = _function(node.this, translator)
        items = tuple(
            Order(translator.translate(each.this), bool(each.args.get("desc")))
            for each in (order.expressions if order is not None else ())
        )
        column = self._numbering.fresh(function.type, function.function not in (*_RANKS, "count", "count_star"))
        keys = tuple(translator.translate(each) for each in partition)
        self.found.append(Window(column.index, function, keys, items, read_frame(spec, items, translator, _name(node))))
        return column

    def _specification(self, node: Any) -> tuple[list[Any], Any, Any]:
        partition = list(node.args.get("partition_by") or [])
        order, spec = node.args.get("order"), node.args.get("spec")
        name = node.args.get("alias")
        if name is not None:
            base = self._named.get(name.name.lower())
            if base is None:
                raise InvalidStatement(Condition.WINDOW_UNKNOWN, name.name)
            inner = self._specification(base)
            if partition:
                raise InvalidStatement(Condition.WINDOW_PARTITION)
            if order is not None and inner[1] is not None:
                raise InvalidStatement(Condition.WINDOW_HAS_ORDER, "<unnamed window>", name.name)
            if inner[2] is not None and (order is not None or spec is not None):
                raise InvalidStatement(Condition.WINDOW_HAS_FRAME, name.name)
            partition, order, spec = partition or inner[0], order or inner[1], spec or inner[2]
        return partition, order, spec


def _name(node: Any) -> str:
    alias = node.args.get("alias")
    return "<unnamed window>" if alias is None else str(alias.name)


def _function(node: Any, translator: QueryTranslator) -> AggregateFunction:
    if isinstance(node, exp.GroupConcat):
        raise Unsupported("GROUP_CONCAT as a window function")
    if not isinstance(node, exp.Anonymous):
        raise Unsupported(f"{type(node).__name__} as a window function")
    name = str(node.this).lower()
    if name in AGGREGATES:
        found = read_aggregate(name, node, translator)
        if found.distinct:
            raise Unsupported("DISTINCT in a window function")
        return found
    arguments = tuple(translator.translate(each) for each in node.expressions)
    _check_count(name, arguments)
    if name in _RANKS:
        return AggregateFunction(name, arguments, _RANKS[name])
    if name not in _VALUES:
        raise InvalidStatement(Condition.UNKNOWN_FUNCTION, node.this)
    if not arguments:
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name.upper())
    if name in ("lag", "lead") and len(arguments) == 1:
        arguments = (*arguments, Literal(1, BIGINT))
    kind = merged_type((arguments[0], arguments[2])) if len(arguments) > 2 else arguments[0].type
    typed = tuple(
        each if place == 1 or each.type == kind else Call("coalesce", (each,), kind) for place, each in enumerate(arguments)
    )
    return AggregateFunction(name, typed, kind)


def _check_count(name: str, arguments: tuple[Expression, ...]) -> None:
    """What NTILE, LAG, LEAD and NTH_VALUE count by, where it is known already."""
    place = _COUNTED.get(name)
    if place is None:
        return
    if name == "ntile" and len(arguments) != 1:
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name)
    if place < len(arguments) and isinstance(given := arguments[place], Literal):
        least = 1 if name == "ntile" else None
        if not isinstance(given.value, int) or (least is not None and given.value < least):
            raise InvalidStatement(Condition.WRONG_ARGUMENTS, name)
