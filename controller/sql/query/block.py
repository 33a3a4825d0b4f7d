"""The query graph: a SELECT with every name resolved, before any node exists.

Columns are numbers (see `fields`). An aggregate, a window function and a subquery used as a
value each have a number of their own too; expressions read them like any column. Blocks nest
in three ways: as a derived table (a `Leaf` of FROM), as a `Subquery`, as a branch of a
`SetBlock`. A number that no source of a block has is an outer reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from controller.sql.plan import Frame, OutputColumn
from controller.sql.query.fields import Field, Relation
from dataflow.expressions.expression import Column, Expression, columns_of
from dataflow.expressions.rewriting import substituted
from dataflow.functions import is_volatile
from dataflow.plan.node import AggregateFunction, Order
from dataflow.schema import Table
from dataflow.values.types import SqlType


@dataclass(slots=True)
class Leaf:
    """A table, a derived table or a relation that is built already, with the numbers of its columns."""

    fields: tuple[Field, ...]
    table: Table | None = None
    derived: AnyBlock | None = None
    relation: Relation | None = None


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
    """A window function: its value is column `id`. Without a `frame` it has the default one."""

    id: int
    function: AggregateFunction
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: Frame | None = None


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
    order_by: list[Order] = field(default_factory=list)
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
    order_by: list[Order] = field(default_factory=list)
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
    found = {each.id for leaf in leaves(source) for each in leaf.fields}
    for leaf in leaves(source):
        if leaf.relation is not None:
            found |= set(leaf.relation.ids)
        if leaf.derived is not None:
            found |= {column.index for column, _ in leaf.derived.outputs}
    return found


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
        found |= {column.index for column, _ in grouping.keys + grouping.functions + grouping.arbitrary}
        found |= {column.index for column in grouping.levels.values()}
    return found


def all_used(block: AnyBlock) -> set[int]:
    """Every column that an expression in the block, or in one inside it, reads."""
    if isinstance(block, SetBlock):
        found = all_used(block.branches[0]) | all_used(block.branches[1])
        for item in block.order_by:
            found |= columns_of(item.expression)
        return found | {column.index for column, _ in block.outputs}
    found = {column.index for column, _ in block.outputs}
    for expression in expressions_of(block):
        found |= columns_of(expression)
    if block.grouping is not None:
        found |= {column.index for column in block.grouping.dependents}
    for subquery in block.subqueries.values():
        found |= all_used(subquery.block)
    for leaf in leaves(block.source):
        if leaf.derived is not None:
            found |= all_used(leaf.derived)
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


def draws(block: AnyBlock) -> bool:
    """Whether something in the block, or in one inside it, is left to chance: no two evaluations give the same."""
    if isinstance(block, SetBlock):
        return any(map(draws, block.branches)) or any(is_volatile(item.expression) for item in block.order_by)
    inside = [subquery.block for subquery in block.subqueries.values()]
    inside += [leaf.derived for leaf in leaves(block.source) if leaf.derived is not None]
    return any(map(is_volatile, expressions_of(block))) or any(map(draws, inside))


def rewritten(block: AnyBlock, mapping: Mapping[int, Expression]) -> AnyBlock:
    """The block, and all inside it, with outer references replaced."""

    def new(expression: Expression) -> Expression:
        return substituted(expression, mapping)

    def item(found: Order) -> Order:
        return Order(new(found.expression), found.descending)

    def function(found: AggregateFunction) -> AggregateFunction:
        order = tuple(Order(new(each.expression), each.descending) for each in found.order)
        return replace(found, arguments=tuple(map(new, found.arguments)), order=order)

    if isinstance(block, SetBlock):
        left, right = block.branches
        return replace(block, branches=(rewritten(left, mapping), rewritten(right, mapping)))
    grouping = block.grouping
    if grouping is not None:
        grouping = replace(
            grouping,
            keys=[(column, new(value)) for column, value in grouping.keys],
            functions=[(column, function(each)) for column, each in grouping.functions],
            arbitrary=[(column, function(each)) for column, each in grouping.arbitrary],
        )
    return replace(
        block,
        source=rewritten_source(block.source, mapping),
        where=list(map(new, block.where)),
        outputs=[(column, new(value)) for column, value in block.outputs],
        grouping=grouping,
        having=list(map(new, block.having)),
        windows=[
            replace(
                each,
                function=function(each.function),
                partition=tuple(map(new, each.partition)),
                order=tuple(map(item, each.order)),
            )
            for each in block.windows
        ],
        order_by=list(map(item, block.order_by)),
        subqueries={
            number: replace(each, block=rewritten(each.block, mapping), operands=tuple(map(new, each.operands)))
            for number, each in block.subqueries.items()
        },
    )


def rewritten_source(source: From, mapping: Mapping[int, Expression]) -> From:
    match source:
        case Leaf(derived=None):
            return source
        case Leaf(derived=derived):
            assert derived is not None
            return replace(source, derived=rewritten(derived, mapping))
        case Inner(items, conditions):
            return Inner(
                [rewritten_source(each, mapping) for each in items], [substituted(each, mapping) for each in conditions]
            )
        case Left(left, right, conditions):
            return Left(
                rewritten_source(left, mapping),
                rewritten_source(right, mapping),
                [substituted(each, mapping) for each in conditions],
            )
