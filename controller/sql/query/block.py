"""The query graph: a SELECT with every name resolved, before any node exists.

Columns are numbers (see `fields`). An aggregate, a window function and a subquery used as a
value each have a number of their own too; expressions read them like any column. Blocks nest
in three ways: as a derived table (a `Leaf` of FROM), as a `Subquery`, as a branch of a
`SetBlock`. A number that no source of a block has is an outer reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from controller.sql.plan import OrderItem, OutputColumn
from controller.sql.query.fields import Field
from dataflow.expression import Column, Expression, columns_of
from dataflow.node import AggregateFunction
from dataflow.schema import Table
from dataflow.types import SqlType


@dataclass(slots=True)
class Leaf:
    """A table or a derived table in FROM, with the numbers of its columns."""

    fields: tuple[Field, ...]
    table: Table | None = None
    derived: AnyBlock | None = None


@dataclass(slots=True)
class Inner:
    items: list[From]
    conditions: list[Expression]


@dataclass(slots=True)
class Left:
    left: From
    right: From
    conditions: list[Expression]


From = Leaf | Inner | Left


@dataclass(slots=True)
class Subquery:
    """A subquery in an expression, which reads its value as column `id`.

    `operator` is "exists", "scalar", or a comparison: true if some row of the subquery
    compares so with `operands` (IN and ANY; ALL is the negation of the opposite).
    """

    id: int
    operator: str
    block: AnyBlock
    type: SqlType
    operands: tuple[Expression, ...] = ()


@dataclass(slots=True)
class Window:
    """A window function: its value is column `id`. `frame` is (unit, start, end), None for the default.

    Bounds of a frame are offsets from the current row, None for unbounded.
    """

    id: int
    function: AggregateFunction
    partition: tuple[Expression, ...]
    order: tuple[OrderItem, ...]
    frame: tuple[str, int | None, int | None] | None = None


@dataclass(slots=True)
class Grouping:
    """`keys` are (number, expression); `rollup` adds the super-aggregate rows.

    `dependents` are columns that the keys determine, `arbitrary` those of which any value
    will do. `levels` are the numbers that GROUPING(key) reads.
    """

    keys: list[tuple[Column, Expression]] = field(default_factory=list)
    functions: list[tuple[Column, AggregateFunction]] = field(default_factory=list)
    dependents: list[Column] = field(default_factory=list)
    arbitrary: list[tuple[Column, AggregateFunction]] = field(default_factory=list)
    levels: dict[int, Column] = field(default_factory=dict)
    explicit: bool = False
    rollup: bool = False


@dataclass(slots=True)
class Block:
    """One SELECT. Without FROM, `source` is an empty `Inner`: one row without columns."""

    source: From
    where: list[Expression]
    outputs: list[tuple[Column, Expression]]
    columns: list[OutputColumn]
    grouping: Grouping | None = None
    having: list[Expression] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    distinct: bool = False
    order_by: list[OrderItem] = field(default_factory=list)
    limit: Expression | None = None
    offset: Expression | None = None
    subqueries: dict[int, Subquery] = field(default_factory=dict)


@dataclass(slots=True)
class SetBlock:
    """UNION, INTERSECT or EXCEPT of two blocks of the same width."""

    operator: str
    distinct: bool
    branches: tuple[AnyBlock, AnyBlock]
    outputs: list[tuple[Column, Expression]]
    columns: list[OutputColumn]
    order_by: list[OrderItem] = field(default_factory=list)
    limit: Expression | None = None
    offset: Expression | None = None


AnyBlock = Block | SetBlock


def leaves(source: From) -> Iterator[Leaf]:
    match source:
        case Leaf():
            yield source
        case Inner(items):
            for item in items:
                yield from leaves(item)
        case Left(left, right):
            yield from leaves(left)
            yield from leaves(right)


def own_ids(source: From) -> set[int]:
    return {each.id for leaf in leaves(source) for each in leaf.fields}


def conditions_of(source: From) -> Iterator[Expression]:
    match source:
        case Inner(items, conditions):
            yield from conditions
            for item in items:
                yield from conditions_of(item)
        case Left(left, right, conditions):
            yield from conditions
            yield from conditions_of(left)
            yield from conditions_of(right)


def expressions_of(block: Block) -> Iterator[Expression]:
    """Every expression of the block itself, not of the blocks inside it."""
    yield from conditions_of(block.source)
    yield from block.where
    yield from block.having
    for _, value in block.outputs:
        yield value
    for item in block.order_by:
        yield item.expression
    if block.grouping is not None:
        for _, value in block.grouping.keys:
            yield value
        for _, function in block.grouping.functions + block.grouping.arbitrary:
            yield from function.arguments
            for each in function.order:
                yield each.expression
    for window in block.windows:
        yield from window.function.arguments
        yield from window.partition
        for order in window.order:
            yield order.expression
    for subquery in block.subqueries.values():
        yield from subquery.operands


def made_ids(block: Block) -> set[int]:
    """Numbers that the block itself gives a value: sources, aggregates, windows, subqueries, outputs."""
    found = own_ids(block.source) | set(block.subqueries) | {column.index for column, _ in block.outputs}
    found |= {window.id for window in block.windows}
    if block.grouping is not None:
        grouping = block.grouping
        found |= {column.index for column, _ in grouping.keys + grouping.functions + grouping.arbitrary}  # type: ignore[operator]
        found |= {column.index for column in grouping.levels.values()}
    return found


def outer_ids(block: AnyBlock) -> set[int]:
    """The outer references of a block and of everything inside it."""
    if isinstance(block, SetBlock):
        found = outer_ids(block.branches[0]) | outer_ids(block.branches[1])
        return found
    found = set()
    for expression in expressions_of(block):
        found |= columns_of(expression)
    for subquery in block.subqueries.values():
        found |= outer_ids(subquery.block)
    for leaf in leaves(block.source):
        if leaf.derived is not None:
            found |= outer_ids(leaf.derived)
    return found - made_ids(block)
