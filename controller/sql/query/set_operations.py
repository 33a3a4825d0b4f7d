"""UNION, INTERSECT and EXCEPT: branches brought to common types, then put together or counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from controller.sql.query.block import AnyBlock, SetBlock, draws, outer_ids
from controller.sql.query.fields import Relation
from controller.sql.query.product import conjunction
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.functions import call
from dataflow.plan.node import Aggregate, AggregateFunction, Join, Node, Union, distinct
from dataflow.values.types import BIGINT, DATES, INTEGERS, TEXTS, Kind, SqlType, decimal

if TYPE_CHECKING:
    from controller.sql.query.building import Builder


def set_operation(builder: Builder, block: SetBlock, carried: Sequence[int]) -> Relation:
    """All rows of the operation, with the carried columns of its branches."""
    ids = tuple(column.index for column, _ in block.outputs) + tuple(carried)
    branches = [_coerced(_branch(builder, branch, carried).node, block) for branch in _flattened(block)]
    if block.operator == "union":
        node: Node = branches[0] if len(branches) == 1 else Union(tuple(branches))
        return Relation(distinct(node) if block.distinct else node, ids)
    # Both sides counted by row: NULLs are equal here, which they are in no join.
    tagged = []
    width = len(ids)
    for side, branch_node in enumerate(branches):
        row = tuple(Column(place, type_) for place, type_ in enumerate(branch_node.types))
        tags = tuple(Literal(int(side == each), BIGINT) for each in (0, 1))
        tagged.append(Join((branch_node,), outputs=(*row, *tags)))
    total = decimal(41, 0)
    counts = tuple(AggregateFunction("sum", (Column(width + each, BIGINT),), total) for each in (0, 1))
    counted = Aggregate(Union(tuple(tagged)), tuple(range(width)), counts)
    zero = Literal(0, BIGINT)
    mine, theirs = Column(width, total), Column(width + 1, total)
    wanted = call(">" if block.operator == "intersect" else "=", theirs, zero)
    outputs = tuple(Column(place, counted.types[place]) for place in range(width))
    return Relation(Join((counted,), (), conjunction([call(">", mine, zero), wanted]), outputs), ids)


def _branch(builder: Builder, block: AnyBlock, carried: Sequence[int]) -> Relation:
    """What is left to chance is not what another branch, which may look the same, has drawn."""
    if draws(block) and not carried and not outer_ids(block):
        return builder.evaluated_before(block, carried)
    return builder.build(block, carried)


def _coerced(node: Node, block: SetBlock) -> Node:
    """A branch in the types of the whole."""
    outputs: list[Expression] = [Column(place, type_) for place, type_ in enumerate(node.types)]
    for place, (column, _) in enumerate(block.outputs):
        if node.types[place] == column.type:
            continue
        if _same_values(node.types[place], column.type):
            outputs[place] = Column(place, column.type)
        else:
            outputs[place] = Call("coalesce", (outputs[place],), column.type)
    if tuple(each.type for each in outputs) == node.types:
        return node
    return Join((node,), outputs=tuple(outputs))


def _same_values(source: SqlType, target: SqlType) -> bool:
    """Whether values of one type are values of the other as they are, so that keys can be traced."""
    if source.kind in INTEGERS:
        return target.kind in INTEGERS
    if source.kind in TEXTS:
        return target.kind in TEXTS and source.collation == target.collation
    zoned = (source.kind is Kind.TIMESTAMP) != (target.kind is Kind.TIMESTAMP)
    return source.kind in DATES and target.kind in DATES and not zoned


def _flattened(block: SetBlock) -> list[AnyBlock]:
    """The branches of nested UNIONs of one kind."""
    found: list[AnyBlock] = []
    for branch in block.branches:
        if (
            isinstance(branch, SetBlock)
            and block.operator == branch.operator == "union"
            and (block.distinct or not branch.distinct)
            and branch.limit is None
        ):
            found += _flattened(branch)
        else:
            found.append(branch)
    return found
