"""ORDER BY … LIMIT inside a query: the first rows for each value of the columns that are carried.

With a number of rows that is known, a node keeps them. With LIMIT ? the rows are numbered in
their order on each read, and cut off by their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from controller.sql.query.block import AnyBlock, Block, Leaf, Window
from controller.sql.query.fields import Relation, computed_output
from controller.sql.query.product import Product, close
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of
from dataflow.functions import call
from dataflow.plan.node import AggregateFunction, Order, TopK
from dataflow.values.types import BIGINT_UNSIGNED, decimal

if TYPE_CHECKING:
    from controller.sql.query.building import Builder

_WIDE = decimal(22, 0)
"""No sum of a LIMIT and an OFFSET is out of its range."""


def has_unknown_limit(block: AnyBlock) -> bool:
    return any(each is not None and not isinstance(each, Literal) for each in (block.limit, block.offset))


def first_rows(
    builder: Builder, block: AnyBlock, product: Product, wanted: list[int], carried: Sequence[int]
) -> Relation:
    if has_unknown_limit(block):
        return _numbered(builder, block, product, wanted, carried)
    limit, offset = _count(block.limit), _count(block.offset)
    assert limit is not None
    order = [(product.expression(item.expression), item.descending) for item in block.order_by]
    extra = {number for value, _ in order for number in columns_of(value)}
    relation = close(product, {*wanted, *extra})
    orders = tuple(Order(relation.bind(value), descending) for value, descending in order)
    partition = tuple(sorted({relation.position(each) for each in carried}))
    return Relation(TopK(relation.node, partition, orders, limit, offset or 0), relation.ids)


def _numbered(
    builder: Builder, block: AnyBlock, product: Product, wanted: list[int], carried: Sequence[int]
) -> Relation:
    order = []
    for item in block.order_by:
        made = builder.numbering.fresh(item.expression.type)
        product.define(made.index, item.expression)
        order.append(Order(made, item.descending))
    relation = close(product, {*wanted, *(number for item in order for number in columns_of(item.expression))})
    columns = {number: Column(number, kind) for number, kind in zip(relation.ids, relation.node.types)}
    number = builder.numbering.fresh(BIGINT_UNSIGNED, False)
    window = Window(
        number.index,
        AggregateFunction("row_number", (), BIGINT_UNSIGNED),
        tuple(columns[each] for each in carried),
        tuple(order),
    )
    shown = [*columns.values(), number]
    numbered = Block(
        Leaf((), relation=relation),
        [],
        [(each, each) for each in shown],
        [computed_output("", each) for each in shown],
        windows=[window],
    )
    builder.used.update(each.index for each in shown)
    found = Product([builder.evaluated_before(numbered, ())])
    assert block.limit is not None
    last = _wide(block.limit)
    if block.offset is not None:
        found.add([call(">", number, block.offset)])
        last = Call("+", (last, _wide(block.offset)), _WIDE)
    found.add([call("<=", number, last)])
    return close(found, wanted)


def _wide(expression: Expression) -> Expression:
    return Call("coalesce", (expression,), _WIDE)


def _count(expression: Expression | None) -> int | None:
    if expression is None:
        return None
    assert isinstance(expression, Literal) and isinstance(expression.value, int)
    return expression.value
