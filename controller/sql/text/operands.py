"""The operands of operators, as far as their syntax matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from controller.sql.expressions.constants import as_number
from controller.sql.expressions.operators import CHOICES, OF_DATES, OF_STRINGS
from controller.sql.parameters import Parameters
from controller.sql.text.parse import parameter_count
from dataflow import schema
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression, Literal
from dataflow.functions.casts import as_texts
from dataflow.functions.compared import as_compared
from dataflow.values.conversion import is_digits
from dataflow.values.types import DATETIME, JSON, NUMBERS, Kind, SqlType


def with_fitting_literals(operator: str, operands: list[Expression], nodes: tuple[Any, Any]) -> list[Expression]:
    """TRUE and FALSE beside a JSON value are JSON's; b'1', x'01' and '1' beside a number are numbers."""
    found = list(operands)
    for this, that in ((0, 1), (1, 0)):
        if isinstance(nodes[this], exp.Boolean) and operands[that].type.kind is Kind.JSON:
            found[this] = Literal("true" if nodes[this].this else "false", operands[that].type)
    return as_compared(operator, as_numbers_beside(found))


def json_truth(node: Any, value: Expression) -> Expression:
    """TRUE and FALSE as they are in a JSON document; any other value as it is."""
    return Literal("true" if node.this else "false", JSON) if isinstance(node, exp.Boolean) else value


def fitting_arguments(
    name: str, nodes: Sequence[Any], values: list[Expression], dated: Callable[[list[Expression]], list[Expression]]
) -> list[Expression]:
    """The arguments of a function: TRUE and FALSE in documents, a TIME where a date is wanted, binary literals beside texts."""
    if name.startswith("json_"):
        return [json_truth(node, value) for node, value in zip(nodes, values)]
    if name in CHOICES:
        values = dated(values)
    if name == "field":
        return as_numbers_beside(as_texts_alone(values))
    if (first := OF_STRINGS.get(name)) is not None:
        return [*values[:first], *as_texts(values[first:])]
    if name in OF_DATES and values:
        moments = 2 if name == "datediff" else 1
        return [*(dated([each, Literal(None, DATETIME)])[0] for each in values[:moments]), *values[moments:]]
    return values


def as_list(operands: list[Expression]) -> list[Expression]:
    """What IN and BETWEEN compare: a value, and those in its list or its bounds."""
    return as_compared("in", as_numbers_beside(operands))


def as_texts_alone(operands: list[Expression]) -> list[Expression]:
    """As `as_texts`. Beside a number, bytes that are written as digits are numbers, and none of the texts."""
    if not any(each.type.kind in NUMBERS for each in operands):
        return as_texts(operands)
    texts = iter(as_texts([each for each in operands if not is_digits(each.type)]))
    return [each if is_digits(each.type) else next(texts) for each in operands]


def as_numbers_beside(operands: list[Expression]) -> list[Expression]:
    """Bytes written as digits are numbers if one of the operands is."""
    if any(each.type.kind in NUMBERS for each in operands):
        return [as_number(each) for each in operands]
    return operands


def each_alone(nodes: list[Any]) -> list[Any]:
    """`nodes` with a placeholder for each parameter, where one stands for several."""
    if len(nodes) != 1 or not isinstance(nodes[0], exp.Placeholder):
        return nodes
    first = int(nodes[0].this) if nodes[0].this.isdigit() else 0
    count = parameter_count(nodes[0])
    return nodes if count == 1 else [exp.Placeholder(this=str(first + place)) for place in range(count)]


def flattened(node: Any) -> list[Any]:
    """The operands of nested calls of the same operator, left to right, however deep."""
    kind = type(node)
    found: list[Any] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if type(each) is kind:
            pending += (each.expression, each.this)
        else:
            found.append(each)
    return found


def default_of(column: schema.TableColumn, parameters: Parameters) -> Expression:
    """DEFAULT(column)"""
    if column.default_now:
        return parameters.fact(f"now:{column.type.scale}", SqlType(Kind.DATETIME, scale=column.type.scale))
    if not column.has_default:
        raise InvalidStatement(Condition.NO_DEFAULT, column.name)
    return Literal(column.default, column.type)
