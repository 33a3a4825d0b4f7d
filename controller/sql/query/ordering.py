"""The order of a derived table or view that a query only selects from is the query's, as in MySQL."""

from __future__ import annotations

from controller.sql.query.block import AnyBlock, Block, Inner, Leaf
from controller.sql.query.fields import Numbering, computed_output
from dataflow.expressions.expression import Column, Expression
from dataflow.plan.node import Order


def keep_order(block: AnyBlock, numbering: Numbering) -> None:
    """Give `block` the ORDER BY of its only source, if it has none and nothing that undoes it."""
    if not isinstance(block, Block) or block.grouping is not None or block.distinct or block.order_by or block.windows:
        return
    source = block.source
    while isinstance(source, Inner) and len(source.items) == 1:
        source = source.items[0]
    if not isinstance(source, Leaf) or source.derived is None:
        return
    derived = source.derived
    keep_order(derived, numbering)
    block.order_by = [
        Order(_output(derived, item.expression, numbering), item.descending) for item in derived.order_by
    ]


def _output(block: AnyBlock, expression: Expression, numbering: Numbering) -> Expression:
    """The output of `block` that is `expression`; one is added if there is none."""
    for column, value in block.outputs:
        if expression in (column, value):
            return column
    made: Column = numbering.fresh(expression.type)
    block.outputs.append((made, expression))
    block.columns.append(computed_output("", expression))
    return made
