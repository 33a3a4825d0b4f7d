"""Aggregate functions as statements have them: arguments, result types, the limits of the session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from controller.sql.expressions.constants import as_number
from controller.sql.expressions.scope import ORDER_CLAUSE
from controller.sql.expressions.translate import Translator
from controller.sql.text.operands import json_truth
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Expression, Literal
from dataflow.functions import call
from dataflow.plan.node import AggregateFunction, Order
from dataflow.values.conversion import decode
from dataflow.values.result_limits import planned
from dataflow.values.types import (
    BIGINT,
    BIGINT_UNSIGNED,
    BLOBS,
    DOUBLE,
    JSON,
    REALS,
    STRINGS,
    Kind,
    SqlType,
    decimal,
    text,
)

_SYNONYMS = {"std": "stddev_pop", "stddev": "stddev_pop", "variance": "var_pop"}
_INTEGER_DIGITS = {
    Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.MEDIUMINT: 8, Kind.INT: 10, Kind.BIGINT: 19, Kind.YEAR: 4,
    Kind.DATE: 8, Kind.TIME: 7, Kind.DATETIME: 14, Kind.TIMESTAMP: 14,
}  # fmt: skip
"""Also of moments, which are added as the numbers that they look like."""


def read_aggregate(name: str, node: Any, translator: Translator) -> AggregateFunction:
    """The aggregate that a call is; `translator` reads its arguments."""
    return _group_concat(node, translator) if name == "group_concat" else _aggregate(name, node, translator)


_UNCHANGED = frozenset({"count", "min", "max", "any_value"})
"""What comes out of these went in, or does not matter."""


def _aggregate(name: str, node: Any, translator: Translator) -> AggregateFunction:
    arguments = node.expressions
    distinct = False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        distinct, arguments = True, arguments[0].expressions
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return AggregateFunction("count_star", (), BIGINT)
    many = (name == "count" and distinct) or name == "json_objectagg"
    if not arguments or (len(arguments) != 1 and not many) or (name == "json_objectagg" and len(arguments) != 2):
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name.upper())
    if distinct and name not in ("count", "sum", "avg", "min", "max"):
        raise Unsupported(f"{name.upper()}(DISTINCT …)")
    translate = translator.translate if name in _UNCHANGED else translator.operand
    argument, *rest = (translate(each) for each in arguments)
    if name.startswith("json"):
        argument, *rest = map(json_truth, arguments, (argument, *rest))
    function = _SYNONYMS.get(name, name)
    if function not in _UNCHANGED and not function.startswith("json"):
        argument = as_number(argument)
        if argument.type.kind is Kind.DECIMAL and not distinct:
            argument = call("unsettled", argument)
    bytes_max = planned().packet_bytes_max
    is_distinct = distinct and function not in ("min", "max")
    type_ = aggregate_type(function, argument.type)
    return AggregateFunction(function, (argument, *rest), type_, is_distinct, bytes_max=bytes_max)


def _positional(node: Any, arguments: list[Expression]) -> Expression | None:
    """ORDER BY 2 is the second argument."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
        return None
    if not 1 <= int(node.this) <= len(arguments):
        raise InvalidStatement(Condition.UNKNOWN_COLUMN, node.this, ORDER_CLAUSE)
    return arguments[int(node.this) - 1]


def _group_concat(node: Any, translator: Translator) -> AggregateFunction:
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
    if distinct or order:  # what is compared is the number of a BIT
        arguments = [call("+", each, Literal(0, BIGINT)) if each.type.kind is Kind.BIT else each for each in arguments]
    argument = arguments[0] if len(arguments) == 1 else call("concat", *arguments)
    type_ = aggregate_type("group_concat", argument.type)
    if argument.type.kind not in STRINGS | BLOBS:
        argument = call("concat", argument)
    items = tuple(Order(_positional(each.this, arguments) or translator.translate(each.this), bool(each.args.get("desc"))) for each in order)
    separator = node.args.get("separator")
    return AggregateFunction(
        "group_concat",
        (argument,),
        type_,
        distinct,
        items,
        "," if separator is None else _separator(translator.translate(separator)),
        planned().group_concat_bytes_max,
    )


def _separator(value: Expression) -> str:
    """Also of 0x2C and b'101100'."""
    assert isinstance(value, Literal)
    return decode(value.value) if isinstance(value.value, bytes) else str(value.value)


def aggregate_type(function: str, argument: SqlType) -> SqlType:
    """The result type of an aggregate over values of one type."""
    match function:
        case "count":
            return BIGINT
        case "sum" | "avg":
            digits = argument.length or 10 if argument.kind is Kind.DECIMAL else _INTEGER_DIGITS.get(argument.kind)
            if argument.kind in (Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP) and digits is not None:
                digits += argument.scale
            if digits is None:
                if argument.kind not in REALS or argument.scale < 0:
                    return DOUBLE
                scale = min(argument.scale + (planned().division_digits if function == "avg" else 0), 30)
                return SqlType(Kind.DOUBLE, 17 + scale, scale)
            if function == "sum":
                return decimal(min(digits + 22, 65), argument.scale)
            added = planned().division_digits
            return decimal(min(digits + added, 65), min(argument.scale + added, 30))
        case "bit_and" | "bit_or" | "bit_xor":
            return BIGINT_UNSIGNED
        case "group_concat":
            if argument.kind in BLOBS:
                return SqlType(Kind.LONGBLOB)
            return text(collation=argument.collation or planned().collation)
        case "json_arrayagg" | "json_objectagg":
            return JSON
        case "min" | "max":
            return replace(argument, zerofill=False)
        case "any_value":
            return argument
        case _:
            return DOUBLE


