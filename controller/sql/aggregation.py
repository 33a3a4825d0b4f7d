"""Aggregates and GROUP BY: expressions over rows become expressions over groups.

While a clause is translated, an aggregate's value is read at a position far beyond any row
(`AGGREGATE_OFFSET`). `Grouping.over_groups` then rewrites each expression to read the group's
row: the GROUP BY values first, then the aggregates'. A column that is neither inside an
aggregate nor determined by the group is error 1055 or 1140 under ONLY_FULL_GROUP_BY, and
any value of the group without it.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.sql.constants import as_number
from controller.sql.plan import Aggregate, OrderItem
from controller.sql.scope import Scope
from controller.sql.translate import Translator
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expression import Call, Column, Expression, Literal, Parameter
from dataflow.functions import call
from dataflow.node import AggregateFunction, Order
from dataflow.result_limits import planned
from dataflow.types import (
    BIGINT,
    BIGINT_UNSIGNED,
    BLOBS,
    DOUBLE,
    JSON,
    STRINGS,
    Kind,
    SqlType,
    decimal,
    text,
)

AGGREGATE_OFFSET = 1 << 30
_SYNONYMS = {"std": "stddev_pop", "stddev": "stddev_pop", "variance": "var_pop"}
_INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.MEDIUMINT: 8, Kind.INT: 10, Kind.BIGINT: 19, Kind.YEAR: 4}


class Grouping:
    """The aggregates and GROUP BY expressions of one SELECT, in the order they were met."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.group_by: list[Expression] = []
        self.aggregates: list[Aggregate] = []

    @property
    def is_grouped(self) -> bool:
        return bool(self.group_by or self.aggregates)

    def collect(self, name: str, node: Any, translator: Translator) -> Expression:
        """Register an aggregate (once, if it occurs several times) and return what reads it."""
        inner = translator.without_aggregates()
        found = read_aggregate(name, node, inner)
        if found not in self.aggregates:
            self.aggregates.append(found)
        return Column(AGGREGATE_OFFSET + self.aggregates.index(found), found.type)

    def over_groups(self, expression: Expression, place: str, strict: bool) -> Expression:
        """`expression` reading the group's row. `place` is for the error: (number, clause)."""
        if expression in self.group_by:
            return Column(self.group_by.index(expression), expression.type)
        match expression:
            case Column(index=index, type=found) if index >= AGGREGATE_OFFSET:
                return Column(len(self.group_by) + index - AGGREGATE_OFFSET, found)
            case Column(index=index, type=found):
                if strict and not self._is_determined(index):
                    raise self._not_grouped(index, place)
                value = Aggregate("any_value", expression, found)
                if value not in self.aggregates:
                    self.aggregates.append(value)
                return Column(len(self.group_by) + self.aggregates.index(value), found)
            case Call(function=function, arguments=arguments, type=found):
                return Call(function, tuple(self.over_groups(each, place, strict) for each in arguments), found)
            case Literal() | Parameter():
                return expression

    def _is_determined(self, index: int) -> bool:
        """Whether the grouped columns include a key of the column's table (NOT NULL, unique)."""
        found = self._scope.column_at(index)
        if found is None:
            return False
        source, _ = found
        columns = source.table.columns
        grouped = {
            columns[each.index - source.offset].id
            for each in self.group_by
            if isinstance(each, Column) and source.offset <= each.index < source.offset + len(columns)
        }
        nullable = {column.id for column in columns if column.nullable}
        for key in (source.table.primary_key, *source.table.indexes):
            if key.unique and all(p.column_id in grouped and p.column_id not in nullable and p.prefix is None for p in key.parts):
                return True
        return False

    def _not_grouped(self, index: int, place: str) -> InvalidStatement:
        found = self._scope.column_at(index)
        assert found is not None
        source, column = found
        name = f"{source.database}.{source.alias}.{column.name}"
        number, _, clause = place.partition(" ")
        condition = Condition.NOT_IN_GROUP_BY if self.group_by else Condition.MIXED_GROUPING
        return InvalidStatement(condition, number, clause, name)


def read_aggregate(name: str, node: Any, translator: Translator) -> Aggregate:
    """The aggregate that a call is; `translator` reads its arguments."""
    return _group_concat(node, translator) if name == "group_concat" else _aggregate(name, node, translator)


def node_function(found: Aggregate) -> AggregateFunction:
    """A parsed aggregate in the plan language; GROUP_CONCAT is given texts."""
    arguments = () if found.argument is None else (found.argument, *found.rest)
    if found.function == "group_concat" and arguments[0].type.kind not in STRINGS | BLOBS:
        arguments = (call("concat", arguments[0]),)
    order = tuple(Order(item.expression, item.descending) for item in found.order_by)
    distinct = found.distinct and found.function not in ("min", "max")
    return AggregateFunction(
        found.function, arguments, found.type, distinct, order, found.separator, found.bytes_max
    )


_UNCHANGED = frozenset({"count", "min", "max", "any_value"})
"""What comes out of these went in, or does not matter."""


def _aggregate(name: str, node: Any, translator: Translator) -> Aggregate:
    arguments = node.expressions
    distinct = False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        distinct, arguments = True, arguments[0].expressions
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return Aggregate("count_star", None, BIGINT)
    many = (name == "count" and distinct) or name == "json_objectagg"
    if not arguments or (len(arguments) != 1 and not many) or (name == "json_objectagg" and len(arguments) != 2):
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name.upper())
    if distinct and name not in ("count", "sum", "avg", "min", "max"):
        raise Unsupported(f"{name.upper()}(DISTINCT …)")
    translate = translator.translate if name in _UNCHANGED else translator.operand
    argument, *rest = (translate(each) for each in arguments)
    function = _SYNONYMS.get(name, name)
    if function not in _UNCHANGED and not function.startswith("json"):
        argument = as_number(argument)
        if argument.type.kind is Kind.DECIMAL and not distinct:
            argument = call("unsettled", argument)
    bytes_max = planned().packet_bytes_max
    return Aggregate(function, argument, aggregate_type(function, argument.type), distinct, tuple(rest), bytes_max=bytes_max)


def _group_concat(node: Any, translator: Translator) -> Aggregate:
    inner, distinct = node.this, False
    order: list[Any] = []
    if isinstance(inner, exp.Order):
        order = inner.expressions
        inner = inner.this
    if isinstance(inner, exp.Distinct):
        distinct = True
        values = inner.expressions
    else:
        values = [inner]
    if len(values) == 1 and type(values[0]) is exp.Concat:
        values = values[0].expressions
    arguments = [translator.operand(each) for each in values]
    argument = arguments[0] if len(arguments) == 1 else call("concat", *arguments)
    items = tuple(OrderItem(translator.translate(each.this), bool(each.args.get("desc"))) for each in order)
    separator = node.args.get("separator")
    return Aggregate(
        "group_concat",
        argument,
        aggregate_type("group_concat", argument.type),
        distinct,
        order_by=items,
        separator="," if separator is None else separator.this,
        bytes_max=planned().group_concat_bytes_max,
    )


def aggregate_type(function: str, argument: SqlType) -> SqlType:
    """The result type of an aggregate over values of one type."""
    match function:
        case "count":
            return BIGINT
        case "sum" | "avg":
            digits = argument.length or 10 if argument.kind is Kind.DECIMAL else _INTEGER_DIGITS.get(argument.kind)
            if digits is None:
                return DOUBLE
            if function == "sum":
                return decimal(min(digits + 22, 65), argument.scale)
            added = planned().division_digits
            return decimal(min(digits + added, 65), min(argument.scale + added, 30))
        case "bit_and" | "bit_or" | "bit_xor":
            return BIGINT_UNSIGNED
        case "group_concat":
            return text(collation=argument.collation) if argument.collation else text()
        case "json_arrayagg" | "json_objectagg":
            return JSON
        case "min" | "max" | "any_value":
            return argument
        case _:
            return DOUBLE


