"""Blocks around blocks: a query as the only table of another one that adds something to it."""

from __future__ import annotations

from collections.abc import Sequence

from controller.sql.query.block import AnyBlock, Block, Inner, Leaf, Window
from controller.sql.query.fields import Numbering, computed_output
from dataflow.expression import Call, Column, Expression
from dataflow.node import AggregateFunction
from dataflow.types import BIGINT_UNSIGNED, SqlType


def wrapped(block: AnyBlock, numbering: Numbering, places: Sequence[int] | None = None) -> Block:
    """SELECT * FROM (`block`), or only the outputs at `places`."""
    chosen = range(len(block.outputs)) if places is None else places
    outputs: list[tuple[Column, Expression]] = []
    for place in chosen:
        column, _ = block.outputs[place]
        outputs.append((numbering.fresh(column.type, block.columns[place].nullable), column))
    return Block(Inner([Leaf((), derived=block)], []), [], outputs, [block.columns[place] for place in chosen])


def numbered(block: AnyBlock, kinds: Sequence[SqlType], numbering: Numbering) -> Block:
    """The rows of `block` in the types given, with one more output: equal rows are numbered."""
    found = wrapped(block, numbering)
    found.outputs = []
    for (column, _), kind, output in zip(block.outputs, kinds, found.columns):
        value = column if column.type == kind else Call("coalesce", (column,), kind)
        found.outputs.append((numbering.fresh(kind, output.nullable), value))
    number = numbering.fresh(BIGINT_UNSIGNED, False)
    function = AggregateFunction("row_number", (), BIGINT_UNSIGNED)
    found.windows = [Window(number.index, function, tuple(value for _, value in found.outputs), ())]
    found.outputs.append((numbering.fresh(BIGINT_UNSIGNED, False), number))
    found.columns = [*found.columns, computed_output("number", number, False)]
    return found
