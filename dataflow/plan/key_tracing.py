"""Keys traced from a view down to the base tables: what can be found by lookups alone.

A node is *traced* by some of its columns if the rows with given values in them can be found
by index lookups. Columns that are computed, that an aggregate or top-k makes, or that come
from the optional side of a left join are not.
"""

from __future__ import annotations

from functools import lru_cache

from dataflow.plan.join_shape import shape_of
from dataflow.plan.node import (
    Aggregate,
    Base,
    Columns,
    Join,
    LeftJoin,
    Node,
    SemiJoin,
    TopK,
    Union,
    bases_of,
    source_column,
)


@lru_cache(maxsize=8192)
def traced(node: Node, columns: Columns) -> Columns:
    """The part of `columns` by which the rows of `node` can be looked up."""
    match node:
        case Base():
            return columns
        case Join():
            start, given = start_of(node, columns)
            return tuple(c for c in columns if column_at(node, start, c) in given)
        case LeftJoin():
            found = {c: source_column(node.outputs, c) for c in columns}
            width = len(node.left.types)
            inner = traced(node.left, tuple(sorted({p for p in found.values() if p is not None and p < width})))
            return tuple(c for c in columns if found[c] in inner)
        case SemiJoin():
            return traced(node.left, columns)
        case Aggregate():
            grouped = tuple(c for c in columns if c < len(node.group))
            inner = traced(node.input, tuple(sorted({node.group[c] for c in grouped})))
            return tuple(c for c in grouped if node.group[c] in inner)
        case TopK():
            return traced(node.input, tuple(c for c in columns if c in node.partition))
        case Union():
            while True:
                kept = columns
                for each in node.inputs:
                    kept = traced(each, kept)
                if kept == columns:
                    return columns
                columns = kept


def column_at(node: Join, number: int, column: int) -> int | None:
    """The column of input `number` that always equals output `column`."""
    position = source_column(node.outputs, column)
    return None if position is None else shape_of(node).column_in(number, position)


@lru_cache(maxsize=8192)
def start_of(node: Join, columns: Columns) -> tuple[int, Columns]:
    """Where a lookup of `node` by `columns` starts: the input, and the columns given there.

    That is where the most columns are given. Among several it is the one that is made of the fewest tables: to read rows
    that are stored is cheaper than to compute some, and the other inputs are only asked for what goes with them.
    """
    best: tuple[int, Columns] = (0, ())
    for number, each in enumerate(node.inputs):
        given = {column_at(node, number, column) for column in columns} - {None}
        found = traced(each, tuple(sorted(c for c in given if c is not None)))
        if not found or len(found) < len(best[1]):
            continue
        if len(found) > len(best[1]) or _leaf_count(each) < _leaf_count(node.inputs[best[0]]):
            best = (number, found)
    return best


@lru_cache(maxsize=8192)
def _leaf_count(node: Node) -> int:
    return sum(1 for _ in bases_of(node))


def table_columns(node: Node, columns: Columns) -> tuple[Base, Columns] | None:
    """The table whose rows the node's rows are, or parts of them, and its columns that these are; None if there is none."""
    match node:
        case Base():
            return node, columns
        case Join(inputs=(Base() as base,)):
            found = [position for column in columns if (position := source_column(node.outputs, column)) is not None]
            return (base, tuple(found)) if len(found) == len(columns) else None
        case _:
            return None


def lookup_columns(node: Node, columns: Columns) -> Columns:
    """By which of `columns` an index of `node` is kept: the traced ones, or all of a full one."""
    return traced(node, columns) or columns


def input_column(node: Node, number: int, column: int) -> int | None:
    """The column of input `number` that has what is looked up in `column`."""
    match node:
        case Join():
            return column_at(node, number, column)
        case LeftJoin():
            return source_column(node.outputs, column)
        case Aggregate():
            return node.group[column]
        case _:
            return column
