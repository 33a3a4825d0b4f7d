"""Expressions rewritten: other columns, expressions in place of columns, literals in place of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter, columns_of
from dataflow.plan.node import AggregateFunction, Base, Node, Order
from dataflow.values.types import NULL, Value


def rewritten(expression: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """`expression` with `leaf` applied to everything in it that is no call."""
    if isinstance(expression, Call):
        arguments = tuple([rewritten(each, leaf) for each in expression.arguments])
        return Call(expression.function, arguments, expression.type)
    return leaf(expression)


def mapped(expression: Expression, new: Callable[[Column], Expression]) -> Expression:
    """`expression` with every column replaced."""
    return rewritten(expression, lambda each: new(each) if isinstance(each, Column) else each)


def substituted(expression: Expression, values: Mapping[int, Expression]) -> Expression:
    """`expression` with the columns that have a value in `values` replaced by it."""
    if not values or not (columns_of(expression) & values.keys()):
        return expression
    return mapped(expression, lambda column: values.get(column.index, column))


def moved(expression: Expression, places: Mapping[int, int]) -> Expression:
    """`expression` with its columns at other positions."""
    return mapped(expression, lambda column: Column(places[column.index], column.type))


def composed(expression: Expression, outputs: Sequence[Expression] | None) -> Expression:
    """An expression over a node's outputs as one over its input row."""
    return expression if outputs is None else mapped(expression, lambda column: outputs[column.index])


def bound(expression: Expression, values: Mapping[int, Value]) -> Expression:
    """`expression` with literals for its parameters."""

    def given(leaf: Expression) -> Expression:
        if not isinstance(leaf, Parameter):
            return leaf
        value = values[leaf.index]
        return Literal(value, NULL if value is None else leaf.type)

    return rewritten(expression, given)


def bound_node(node: Node, values: Mapping[int, Value]) -> Node:
    """`node` with literals for its parameters; itself if it has none."""
    return node if not values else _bound_value(node, values)


def _bound_value(value: Any, values: Mapping[int, Value]) -> Any:
    match value:
        case Parameter() | Call():
            return bound(value, values)
        case tuple():
            return tuple([_bound_value(each, values) for each in value])
        case Base():
            return value
        case Order() | AggregateFunction():
            return _bound_fields(value, values)
        case _ if isinstance(value, Node):
            return _bound_fields(value, values)
        case _:
            return value


def _bound_fields(value: Any, values: Mapping[int, Value]) -> Any:
    changed = {}
    for field in fields(value):
        before = getattr(value, field.name)
        after = _bound_value(before, values)
        if after is not before and after != before:
            changed[field.name] = after
    return replace(value, **changed) if changed else value
