"""Expressions and columns of nodes as text, for EXPLAIN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Join, LeftJoin, Node, SemiJoin, TopK, Union
from dataflow.schema import Table
from dataflow.values.conversion import Domain, convert
from dataflow.values.types import DATES, Kind, SqlType, Value

Names = list[str]

_INFIX = frozenset(
    {"=", "<=>", "<", "<=", ">", ">=", "<>", "!=", "+", "-", "*", "/", "%", "and", "or", "xor", "like", "div", "mod"}
)


def expression_text(expression: Expression, names: Sequence[str], parameters: Sequence[Value]) -> str:
    match expression:
        case Column(index=index):
            return names[index] if index < len(names) else f"column {index + 1}"
        case Literal(value=value, type=kind):
            return value_text(value, kind)
        case Parameter(index=index, type=kind):
            return value_text(parameters[index], kind) if index < len(parameters) else "?"
        case Call(function=function, arguments=arguments):
            shown = [expression_text(each, names, parameters) for each in arguments]
            if function in _INFIX and len(shown) > 1:
                return "(" + f" {function} ".join(shown) + ")"
            if function == "as compared":  # said by nobody
                return shown[0]
            if function == "in":
                return f"({shown[0]} in ({', '.join(shown[1:])}))"
            return f"{function}({', '.join(shown)})"


def value_text(value: Value, kind: SqlType) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int) and (kind.kind in DATES or kind.kind is Kind.TIME):
        return f"'{convert(value, kind, Domain.TEXT)}'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def names_of(node: Node, tables: Mapping[int, Table], parameters: Sequence[Value]) -> Names:
    """A name for each column of a node's rows."""
    match node:
        case Base():
            table = tables.get(node.table)
            if table is None:
                return [f"{node.name or node.table}.{number + 1}" for number in range(len(node.types))]
            return [f"{table.name}.{column.name}" for column in table.columns][: len(node.types)]
        case Join():
            inner = [name for each in node.inputs for name in names_of(each, tables, parameters)]
            return _mapped(node.outputs, inner, parameters)
        case LeftJoin():
            inner = [*names_of(node.left, tables, parameters), *names_of(node.right, tables, parameters)]
            return _mapped(node.outputs, inner, parameters)
        case SemiJoin():
            return names_of(node.left, tables, parameters)
        case Aggregate():
            inner = names_of(node.input, tables, parameters)
            return [*(inner[column] for column in node.group), *(_function(each, inner, parameters) for each in node.functions)]
        case TopK():
            return names_of(node.input, tables, parameters)
        case Union():
            return names_of(node.inputs[0], tables, parameters)


def _mapped(outputs: tuple[Expression, ...] | None, names: Names, parameters: Sequence[Value]) -> Names:
    return names if outputs is None else [expression_text(each, names, parameters) for each in outputs]


def _function(function: AggregateFunction, names: Names, parameters: Sequence[Value]) -> str:
    arguments = ", ".join(expression_text(each, names, parameters) for each in function.arguments)
    name = function.function.removesuffix("_star")
    return f"{name}({'distinct ' if function.distinct else ''}{arguments or '*'})"
