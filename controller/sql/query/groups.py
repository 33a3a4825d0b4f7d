"""Aggregate nodes: one for a GROUP BY, one for each level of a ROLLUP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.sql.query.block import Grouping
from controller.sql.query.fields import Relation, all_columns
from controller.sql.query.product import Product, close
from dataflow.expressions.expression import Column, Expression, Literal
from dataflow.plan.node import Aggregate, AggregateFunction, Join, Order, Union
from dataflow.values.types import BIGINT

CONSTANT = -1
"""The number of the column that the grand total of a ROLLUP is grouped by."""


def group(product: Product, grouping: Grouping, carried: Sequence[int]) -> Product:
    """The groups of a product: keys, dependent columns and carried ones, then the functions."""
    functions = grouping.functions + grouping.arbitrary
    for column, value in grouping.keys:
        if column != value:
            product.define(column.index, value)
    keys = [column.index for column, _ in grouping.keys]
    beside = [column.index for column in grouping.dependents] + list(carried)
    needed = {*keys, *beside}
    for _, function in functions:
        for each in (*function.arguments, *(order.expression for order in function.order)):
            needed |= all_columns([product.expression(each)])
    relation = close(product, needed)
    bound = [(column, bound_function(function, product, relation)) for column, function in functions]
    bound.sort(key=lambda each: repr(each[1]))
    if not grouping.rollup:
        return _grouped(relation, [*keys, *beside], bound)
    levels: list[Relation] = []
    ids = [*keys, *beside, *(column.index for column, _ in bound), *(each.index for each in grouping.levels.values())]
    for count in range(len(keys), -1, -1):
        level = [*keys[:count], *beside]
        found = _grouped(relation, level, bound) if level else _grouped(_with_constant(relation), [CONSTANT], bound)
        for column, _ in grouping.keys[count:]:
            found.define(column.index, Literal(None, column.type))
        for number, mark in grouping.levels.items():
            found.define(mark.index, Literal(int(keys.index(number) >= count), BIGINT))
        levels.append(_projected(found, ids))
    return Product([Relation(Union(tuple(each.node for each in levels)), tuple(ids))])


def _with_constant(relation: Relation) -> Relation:
    """With one more column, the same in all rows: grouped by it, no rows give no group."""
    columns = tuple([Column(place, each) for place, each in enumerate(relation.node.types)])
    node = Join((relation.node,), outputs=(*columns, Literal(0, BIGINT)))
    return Relation(node, (*relation.ids, CONSTANT))


def _grouped(
    relation: Relation, keys: Sequence[int], functions: Sequence[tuple[Column, AggregateFunction]]
) -> Product:
    places = sorted({relation.position(each) for each in keys})
    node = Aggregate(relation.node, tuple(places), tuple(function for _, function in functions))
    ids = [relation.ids[place] for place in places] + [column.index for column, _ in functions]
    found = Product([Relation(node, tuple(ids))])
    for each in keys:
        if each not in ids:
            same = relation.ids[relation.position(each)]
            found.values[each] = Column(same, relation.node.types[relation.position(each)])
    return found


def _projected(product: Product, ids: Sequence[int]) -> Relation:
    (source,) = product.inputs
    outputs: list[Expression] = []
    for number in ids:
        value = product.values.get(number)
        if value is None:
            place = source.position(number)
            outputs.append(Column(place, source.node.types[place]))
        else:
            outputs.append(source.bind(value))
    return Relation(Join((source.node,), outputs=tuple(outputs)), tuple(ids))


def bound_function(function: AggregateFunction, product: Product, relation: Relation) -> AggregateFunction:
    """The function reading the relation's row."""

    def bind(expression: Expression) -> Expression:
        return relation.bind(product.expression(expression))

    return replace(
        function,
        arguments=tuple(bind(each) for each in function.arguments),
        order=tuple(Order(bind(each.expression), each.descending) for each in function.order),
    )
