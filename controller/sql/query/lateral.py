"""Derived tables that read columns of the tables before them: LATERAL, and outer references.

Such a table is taken out of its place like a correlated subquery (see `correlation`) and joined
by what it read. An aggregate without GROUP BY has a row even where it read nothing; there its
values are those of no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.sql.query.block import AnyBlock, Block, From, Inner, Leaf, Left, leaves, outer_ids, own_ids
from controller.sql.query.correlation import detach
from controller.sql.query.fields import Relation
from controller.sql.query.product import Product, close
from controller.sql.query.subqueries import aggregated, is_single, simplified
from dataflow.expressions.expression import Expression, Literal
from dataflow.expressions.rewriting import substituted
from dataflow.functions import call

if TYPE_CHECKING:
    from controller.sql.query.building import Builder


def reads_before(source: From) -> set[int]:
    """The columns from outside that derived tables of `source` read."""
    found: set[int] = set()
    for leaf in leaves(source):
        if leaf.derived is not None:
            found |= outer_ids(leaf.derived)
    return found - own_ids(source)


def in_sight(items: list[From]) -> tuple[list[From], list[Expression]]:
    """`items` of an inner join, so that each one that reads an earlier one stands beside it.

    The conditions are those of inner joins that were opened for that.
    """
    found: list[From] = []
    conditions: list[Expression] = []
    for item in items:
        before = {number for each in found for number in own_ids(each)}
        if not reads_before(item) & before or isinstance(item, Leaf):
            found.append(item)
        elif isinstance(item, Inner):
            inner, opened = in_sight([*found, *item.items])
            found = inner
            conditions += [*item.conditions, *opened]
        else:
            # a × (b LEFT JOIN c) is (a × b) LEFT JOIN c
            found = [Left(Inner([*found, item.left], []), item.right, item.conditions)]
    return found, conditions


def attach_derived(builder: Builder, product: Product, block: AnyBlock) -> Product:
    """Each row of `product` with the rows that the derived table has for it."""
    block = simplified(builder, block)
    if is_single(block):
        assert isinstance(block, Block)
        product, values, having = _beside(builder, product, block)
        for number, value in values.items():
            product.define(number, value)
        product.add(having)
        return product
    relation, links = _detached(builder, product, block)
    product.inputs.append(relation)
    product.add(links)
    return product


def attach_optional(builder: Builder, product: Product, block: AnyBlock, conditions: list[Expression]) -> Product:
    """As `attach_derived`, for LEFT JOIN … ON `conditions`."""
    block = simplified(builder, block)
    if is_single(block):
        assert isinstance(block, Block)
        product, values, having = _beside(builder, product, block)
        wanted = [substituted(each, values) for each in (*conditions, *having)]
        for number, value in values.items():
            if wanted:
                condition = wanted[0] if len(wanted) == 1 else call("and", *wanted)
                value = call("if", condition, value, Literal(None, value.type))
            product.define(number, value)
        return product
    relation, links = _detached(builder, product, block)
    left = close(product, builder.needed(product))
    return Product([builder.left_join(left, relation, [*links, *conditions])])


def _detached(builder: Builder, product: Product, block: AnyBlock) -> tuple[Relation, list[Expression]]:
    detached = detach(builder, product, block)
    relation = builder.build(detached.block, detached.carried)
    builder.used.update(relation.ids)
    return relation, detached.links


def _beside(
    builder: Builder, product: Product, block: Block
) -> tuple[Product, dict[int, Expression], list[Expression]]:
    """The product with the groups that belong to its rows, and the outputs and HAVING over them."""
    detached = detach(builder, product, block)
    assert isinstance(detached.block, Block)
    right, defaults = aggregated(builder, detached.block, detached.carried)
    builder.used.update(right.ids)
    left = close(product, builder.needed(product))
    joined = Product([builder.left_join(left, right, detached.links)])
    values = {column.index: substituted(value, defaults) for column, value in detached.block.outputs}
    return joined, values, [substituted(each, defaults) for each in detached.block.having]
