"""Subqueries in expressions: semi joins, marks and values.

EXISTS, IN and ANY as conditions of their own are semi joins; elsewhere each outer row is
marked 1, 0 or NULL by a union of semi joins. NOT IN keeps MySQL's meaning of NULL: a row passes
if no row of the subquery equals it *and* none is unknown. A scalar subquery is a left join
with at most one row for each outer row; more than one is error 1242 when its value is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from controller.sql.query.block import AnyBlock, Block, Subquery, all_used, outer_ids
from controller.sql.query.correlation import detach, reads_deeply, split_where
from controller.sql.query.fields import Relation, all_columns
from controller.sql.query.groups import group
from controller.sql.query.product import Product, close, conjunction, only
from controller.sql.query.wrapping import apart
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of
from dataflow.expressions.rewriting import substituted
from dataflow.functions import call
from dataflow.plan.join_shape import is_unique
from dataflow.plan.node import Aggregate, AggregateFunction, Join, Node, SemiJoin, Union
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, BOOLEAN, SqlType

if TYPE_CHECKING:
    from controller.sql.query.building import Builder

OF_NOTHING = {"count": 0, "count_star": 0, "bit_or": 0, "bit_xor": 0, "bit_and": (1 << 64) - 1}
"""Aggregates that are not NULL over no rows."""


def attach_condition(
    builder: Builder, product: Product, condition: Expression, subqueries: dict[int, Subquery]
) -> Product:
    """Keep the rows for which `condition`, which may read subqueries, is true."""
    match condition:
        case Column(index=index) if index in subqueries:
            subquery, negated = subqueries[index], False
        case Call("not", (Column(index=index),)) if index in subqueries:
            subquery, negated = subqueries[index], True
        case _:
            product = builder.with_subqueries(product, [condition], subqueries)
            product.add([condition])
            return product
    if subquery.operator == "scalar" or is_single(subquery.block):
        product = builder.with_subqueries(product, [condition], subqueries)
        product.add([condition])
        return product
    product = builder.with_subqueries(product, subquery.operands, subqueries)
    return _semi_join(builder, product, subquery, negated)


def attach(builder: Builder, product: Product, subquery: Subquery) -> Product:
    """Define the subquery's value as a column."""
    block = subquery.block
    if subquery.operator == "scalar":
        return _scalar(builder, product, block, subquery.id)
    if not is_single(block):
        return _mark(builder, product, subquery)
    assert isinstance(block, Block)
    # Exactly one row, unless HAVING rejects it: comparing with some row is comparing with it.
    found: Expression = Literal(1, BOOLEAN)
    if subquery.operator != "exists":
        compared: list[Expression] = []
        for operand, (column, value) in zip(subquery.operands, block.outputs):
            single = builder.numbering.fresh(column.type)
            output = builder.numbering.fresh(column.type)
            one = replace(block, outputs=[(output, value)], having=[])
            product = _scalar(builder, product, one, single.index)
            compared.append(call(subquery.operator, operand, single))
        found = compared[0] if len(compared) == 1 else call("and", *compared)
    if block.having:
        present = builder.numbering.fresh(BOOLEAN)
        output = builder.numbering.fresh(BOOLEAN, False)
        marked = replace(block, outputs=[(output, Literal(1, BOOLEAN))])
        product = _scalar(builder, product, marked, present.index)
        found = call("if", call("is not null", present), found, Literal(0, BOOLEAN))
    product.define(subquery.id, found)
    return product


def simplified(builder: Builder, block: AnyBlock) -> AnyBlock:
    """The block; if it is a single row with more to it than aggregates, that is the only table of a query."""
    if not is_single(block):
        return block
    assert isinstance(block, Block)
    if not block.windows and not _over(block) & block.subqueries.keys():
        return block
    found = apart(block, builder.numbering)
    builder.used |= all_used(found)
    return found


def _over(block: Block) -> set[int]:
    """What is read of the row of an aggregate without GROUP BY."""
    return all_columns([value for _, value in block.outputs]) | all_columns(block.having)


def is_single(block: AnyBlock) -> bool:
    """An aggregate without GROUP BY: one row, whatever it reads."""
    return isinstance(block, Block) and block.grouping is not None and not block.grouping.explicit and block.limit is None


# -- EXISTS, IN, ANY


def _right_side(
    builder: Builder, product: Product, subquery: Subquery
) -> tuple[Relation, list[Expression], list[Expression]]:
    """The subquery's rows, the conditions that correlate them, and the comparisons with the operands."""
    block = subquery.block
    if isinstance(block, Block) and not block.windows and block.grouping is None and _keeps_rows(block, subquery):
        local, links = split_where(block)
        if not reads_deeply(block):
            inner = builder.core(local)
            outputs = [value for _, value in block.outputs] if subquery.operator != "exists" else []
            inner = builder.with_subqueries(inner, [*links, *outputs], block.subqueries)
            comparisons: list[Expression] = [
                call(subquery.operator, left, right) for left, right in zip(subquery.operands, outputs)
            ]
            reads: set[int] = set()
            for each in (*links, *comparisons):
                reads |= columns_of(each) & inner.ids
            if subquery.operator == "exists" and not reads and inner.inputs:
                reads = {inner.inputs[0].ids[0]} if inner.inputs[0].ids else set()
            return close(inner, reads), links, comparisons
    detached = detach(builder, product, block)
    relation = builder.build(detached.block, detached.carried)
    comparisons = [
        call(subquery.operator, left, column) for left, (column, _) in zip(subquery.operands, block.outputs)
    ]
    return relation, detached.links, comparisons


def _keeps_rows(block: Block, subquery: Subquery) -> bool:
    """Whether LIMIT changes nothing: EXISTS only asks for one row."""
    if block.limit is None:
        return True
    limit = block.limit
    return (
        subquery.operator == "exists"
        and block.offset is None
        and isinstance(limit, Literal)
        and isinstance(limit.value, int)
        and limit.value > 0
    )


def _base(
    builder: Builder, product: Product, conditions: list[Expression]
) -> tuple[Relation, list[Expression], Callable[[Relation], Product]]:
    """The relation of `product` that the conditions read, they themselves, and how to put another in its place."""
    inner = [product.expression(each) for each in conditions]
    ids = {number for each in inner for number in columns_of(each)} & product.ids
    place = product.covering(ids) if product.inputs else None
    if place is not None:
        chosen = place

        def put(relation: Relation) -> Product:
            inputs = list(product.inputs)
            inputs[chosen] = relation
            return Product(inputs, product.conditions, product.values)

        return product.inputs[place], inner, put
    reads = {number for each in conditions for number in columns_of(each)} & product.ids
    return close(product, builder.needed(product) | reads), conditions, lambda relation: Product([relation])


def _matched(left: Relation, right: Relation, conditions: Iterable[Expression], negated: bool) -> Relation:
    """The semi join of two relations; conditions on the right alone are put there."""
    from controller.sql.query.building import linked

    given = list(conditions)
    own = [each for each in given if only(each, set(right.ids))]
    if own:
        right = close(Product([right], own), right.ids)
    equalities, filters = linked(left, right, [each for each in given if each not in own])
    both = Relation(left.node, left.ids + right.ids)
    found = conjunction(both.bind(each) for each in filters)
    return Relation(SemiJoin(left.node, right.node, equalities, found, negated), left.ids)


def _semi_join(builder: Builder, product: Product, subquery: Subquery, negated: bool) -> Product:
    right, links, comparisons = _right_side(builder, product, subquery)
    left, conditions, put = _base(builder, product, [*links, *comparisons])
    links, comparisons = conditions[: len(links)], conditions[len(links) :]
    found = _matched(left, right, conditions, negated)
    if negated:
        for unknown in _unknown(builder, comparisons, set(right.ids)):
            found = _matched(found, right, [*links, unknown], True)
    return put(found)


def _unknown(builder: Builder, comparisons: list[Expression], right: set[int]) -> list[Expression]:
    """When a comparison is NULL, as alternatives; none if it never is."""
    if not comparisons or not any(builder.numbering.may_be_null(each) for each in comparisons):
        return []
    if len(comparisons) > 1:
        return [call("is null", call("and", *comparisons))]
    (comparison,) = comparisons
    assert isinstance(comparison, Call)
    found: list[Expression] = []
    for each in comparison.arguments:
        if builder.numbering.may_be_null(each):
            found.append(call("is null", each))
    return found


def _mark(builder: Builder, product: Product, subquery: Subquery) -> Product:
    """Each row once, with 1, 0 or NULL for what the subquery is."""
    right, links, comparisons = _right_side(builder, product, subquery)
    left, conditions, put = _base(builder, product, [*links, *comparisons])
    links, comparisons = conditions[: len(links)], conditions[len(links) :]
    others = _matched(left, right, conditions, True)
    branches: list[tuple[Relation, int | None]] = [(_matched(left, right, conditions, False), 1)]
    unknown = _unknown(builder, comparisons, set(right.ids))
    if unknown:
        either = [*links, unknown[0] if len(unknown) == 1 else call("or", *unknown)]
        branches.append((_matched(others, right, either, False), None))
        others = _matched(others, right, either, True)
    branches.append((others, 0))
    nodes: list[Node] = []
    for relation, value in branches:
        row = tuple(Column(place, type_) for place, type_ in enumerate(relation.node.types))
        nodes.append(Join((relation.node,), outputs=(*row, Literal(value, BOOLEAN))))
    return put(Relation(Union(tuple(nodes)), (*left.ids, subquery.id)))


# -- scalar subqueries


def _scalar(builder: Builder, product: Product, block: AnyBlock, number: int) -> Product:
    single = is_single(block)
    if single and not outer_ids(block) and isinstance(block, Block) and not block.having:
        product.inputs.append(builder.build(block))
        product.define(number, block.outputs[0][0])
        return product
    block = simplified(builder, block)
    single = is_single(block)
    detached = detach(builder, product, block)
    inner = detached.block
    value: Expression
    if single and isinstance(inner, Block):
        right, value = _aggregated(builder, inner, detached.carried)
    else:
        right, value = _at_most_one(builder, inner, detached.carried)
    builder.used.update(right.ids)
    left, links, put = _base(builder, product, detached.links)
    product = put(builder.left_join(left, right, links))
    product.define(number, value)
    return product


def _aggregated(builder: Builder, block: Block, carried: list[int]) -> tuple[Relation, Expression]:
    """The groups by carried columns, and the value for one of them, or for none."""
    right, defaults = aggregated(builder, block, carried)
    ((_, output),) = block.outputs
    found = substituted(output, defaults)
    if block.having:
        conditions = [substituted(each, defaults) for each in block.having]
        condition = conditions[0] if len(conditions) == 1 else call("and", *conditions)
        found = call("if", condition, found, Literal(None, output.type))
    return right, found


def aggregated(builder: Builder, block: Block, carried: list[int]) -> tuple[Relation, dict[int, Expression]]:
    """The groups of an aggregate without GROUP BY by its carried columns.

    Outputs and HAVING read them; beside, what aggregates are that are not NULL over no rows.
    """
    assert block.grouping is not None
    reads = _over(block)
    product = group(builder.core(block), block.grouping, carried)
    right = close(product, (product.ids & reads) | set(carried))
    defaults: dict[int, Expression] = {}
    for column, function in block.grouping.functions:
        if function.function in OF_NOTHING:
            value = Literal(OF_NOTHING[function.function], _integer(function))
            defaults[column.index] = Call("coalesce", (column, value), column.type)
    return right, defaults


def _integer(function: AggregateFunction) -> SqlType:
    return BIGINT if function.function.startswith("count") else BIGINT_UNSIGNED


def _at_most_one(builder: Builder, block: AnyBlock, carried: list[int]) -> tuple[Relation, Expression]:
    relation = builder.build(block, carried)
    value = block.outputs[0][0]
    places = tuple(sorted({relation.position(each) for each in carried}))
    if is_unique(relation.node, places):
        return relation, value
    place = relation.position(value.index)
    count = builder.numbering.fresh(BIGINT)
    only_one = builder.numbering.fresh(value.type)
    functions = (
        AggregateFunction("any_value", (Column(place, value.type),), value.type),
        AggregateFunction("count_star", (), BIGINT),
    )
    node = Aggregate(relation.node, places, functions)
    ids = (*(relation.ids[each] for each in places), only_one.index, count.index)
    return Relation(node, ids), call("single row", count, only_one)
