"""Blocks around blocks: a query as the only table of another one that adds something to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.sql.query.block import (
    AnyBlock,
    Block,
    Grouping,
    Inner,
    Leaf,
    SetBlock,
    Subquery,
    Window,
    expressions_of,
    leaves,
    outer_ids,
    rewritten,
)
from controller.sql.query.fields import Numbering, all_columns, computed_output
from dataflow.expressions.expression import Call, Column, Expression
from dataflow.expressions.rewriting import mapped
from dataflow.plan.node import AggregateFunction, Order
from dataflow.values.types import BIGINT_UNSIGNED, SqlType


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


def ordered_by_any(block: Block, numbering: Numbering) -> Block:
    """A DISTINCT in the order of values that it does not select: of those that equal rows have, any one."""
    shown = len(block.outputs)
    order = block.order_by
    found = wrapped(block, numbering)
    block.distinct, block.order_by = False, []
    extra = [numbering.fresh(item.expression.type) for item in order]
    block.outputs += [(column, item.expression) for column, item in zip(extra, order)]
    block.columns = [*block.columns, *(computed_output("", column) for column in extra)]
    functions = [(numbering.fresh(each.type), AggregateFunction("any_value", (each,), each.type)) for each in extra]
    keys: list[tuple[Column, Expression]] = [(column, column) for column, _ in block.outputs[:shown]]
    found.grouping = Grouping(keys, arbitrary=functions, explicit=True)
    found.order_by = [Order(column, item.descending) for (column, _), item in zip(functions, order)]
    return found


def apart(block: Block, numbering: Numbering) -> Block:
    """An aggregate without GROUP BY as the only table of a query that does the rest: subqueries, windows, HAVING."""
    grouping = block.grouping
    assert grouping is not None
    inner = replace(block, having=[], windows=[], order_by=[], outputs=[], columns=[])
    below = _read_below(inner)
    made = {column.index: (numbering.fresh(column.type), column) for column, _ in grouping.functions + grouping.arbitrary}
    inner.outputs = list(made.values())
    inner.columns = [computed_output("", column) for column, _ in inner.outputs]
    inner.subqueries = {number: each for number, each in block.subqueries.items() if number in below}
    over = {number: each for number, each in block.subqueries.items() if number not in below}
    upper = Block(Inner([], []), block.having, block.outputs, block.columns, windows=block.windows, subqueries=over)
    found = rewritten(upper, {number: fresh for number, (fresh, _) in made.items()})
    assert isinstance(found, Block)
    found.source = Inner([Leaf((), derived=inner)], [])
    return found


def beyond_windows(block: Block, numbering: Numbering) -> Block:
    """The block; if subqueries read its window functions, that is the only table of a query that has those subqueries."""
    reading: dict[int, Subquery] = {}
    seen = {window.id for window in block.windows}
    while found := {
        number: each
        for number, each in block.subqueries.items()
        if number not in seen and (all_columns(each.operands) | outer_ids(each.block)) & seen
    }:
        reading |= found
        seen |= found.keys()
    if not reading:
        return block
    upper = replace(block, source=Inner([], []), where=[], grouping=None, having=[], windows=[], subqueries=reading)
    made = {
        column.index: (numbering.fresh(column.type), column)
        for column in _columns_read(upper)
        if column.index in outer_ids(upper)
    }
    inner = replace(block, distinct=False, order_by=[], limit=None, offset=None)
    inner.outputs = list(made.values())
    inner.columns = [computed_output("", column) for column, _ in inner.outputs]
    inner.subqueries = {number: each for number, each in block.subqueries.items() if number not in reading}
    around = rewritten(upper, {number: fresh for number, (fresh, _) in made.items()})
    assert isinstance(around, Block)
    around.source = Inner([Leaf((), derived=inner)], [])
    return around


def _columns_read(block: AnyBlock) -> list[Column]:
    """Every column that is read in the block and in what is inside it."""
    found: list[Column] = []

    def note(column: Column) -> Column:
        found.append(column)
        return column

    if isinstance(block, SetBlock):
        return [each for branch in block.branches for each in _columns_read(branch)]
    for expression in expressions_of(block):
        mapped(expression, note)
    inside = [each.block for each in block.subqueries.values()]
    inside += [leaf.derived for leaf in leaves(block.source) if leaf.derived is not None]
    return found + [each for one in inside for each in _columns_read(one)]


def _read_below(block: Block) -> set[int]:
    """The subqueries that the rows and aggregates of the block are made with."""
    found: set[int] = set()
    wanted = all_columns(expressions_of(replace(block, subqueries={}))) & block.subqueries.keys()
    while wanted:
        found |= wanted
        operands = [each for number in wanted for each in block.subqueries[number].operands]
        wanted = all_columns(operands) & block.subqueries.keys() - found
    return found
