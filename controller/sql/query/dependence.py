"""Functional dependence: which columns the grouped ones determine, as MySQL 8 derives it.

Known columns spread along equalities (`a = b`, `a = constant`), from a unique key without
NULLs to its whole table, through the condition of an outer join to its optional side, and
into derived tables and out again.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.sql.query.block import Block, From, Inner, Leaf, Left
from dataflow.expressions.expression import Call, Column, Expression, columns_of


def determined(known: Iterable[int], source: From, where: Iterable[Expression], outside: set[int]) -> set[int]:
    """All numbers of columns that have one value wherever those of `known` have; `outside` are constants."""
    found = set(known) | outside
    conditions = list(where)
    while True:
        before = len(found)
        _equal(conditions, found, found)
        _spread(source, found)
        if len(found) == before:
            return found


def _equal(conditions: Iterable[Expression], known: set[int], found: set[int]) -> None:
    for condition in conditions:
        if isinstance(condition, Call) and condition.function == "=":
            for one, other in (condition.arguments, condition.arguments[::-1]):
                if isinstance(one, Column) and columns_of(other) <= known:
                    found.add(one.index)


def _spread(source: From, found: set[int]) -> None:
    match source:
        case Inner(items, conditions):
            _equal(conditions, found, found)
            for item in items:
                _spread(item, found)
        case Left(left, right, conditions):
            _spread(left, found)
            inside = {each for leaf in _leaves(right) for each in (field.id for field in leaf.fields)}
            if all(columns_of(each) - inside <= found for each in conditions):
                _equal(conditions, found, found)
                _spread(right, found)
        case Leaf():
            _spread_leaf(source, found)


def _leaves(source: From) -> list[Leaf]:
    match source:
        case Leaf():
            return [source]
        case Inner(items):
            return [leaf for item in items for leaf in _leaves(item)]
        case Left(left, right):
            return _leaves(left) + _leaves(right)


def _spread_leaf(leaf: Leaf, found: set[int]) -> None:
    ids = [each.id for each in leaf.fields]
    if set(ids) <= found:
        return
    if leaf.table is not None:
        columns = leaf.table.columns
        known = {column.id for column, number in zip(columns, ids) if number in found}
        nullable = {column.id for column in columns if column.nullable}
        for key in (leaf.table.primary_key, *leaf.table.indexes):
            parts = {part.column_id for part in key.parts}
            if parts and key.unique and parts <= known - nullable and all(part.prefix is None for part in key.parts):
                found.update(ids)
                return
    elif isinstance(leaf.derived, Block):
        found.update(_of_block(leaf.derived, found))


def _of_block(block: Block, found: set[int]) -> set[int]:
    """The outputs of a derived table that its known outputs determine."""
    outputs = [(column.index, value) for column, value in block.outputs]
    known = {value.index for number, value in outputs if number in found and isinstance(value, Column)}
    if block.grouping is not None:
        keys = {column.index for column, _ in block.grouping.keys}
        if keys <= known and not block.grouping.rollup:
            return {number for number, _ in outputs}
        inner = known
    else:
        inner = determined(known, block.source, block.where, set())
    return {number for number, value in outputs if columns_of(value) and columns_of(value) <= inner}
