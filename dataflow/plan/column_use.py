"""The columns of its tables that a node uses, and the same node over more or fewer columns.

A *narrowed* node reads only the columns that it uses, and names them by their ids. It stays the same whatever becomes of a table's other
columns, so queries that outlive changes of their tables are known by it. The dataflow takes *widened* nodes, over all columns of
a table, so that queries share the table's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from dataflow.expressions.expression import Expression, columns_of
from dataflow.expressions.rewriting import moved
from dataflow.plan.node import (
    Aggregate,
    Base,
    Columns,
    Join,
    LeftJoin,
    Node,
    Order,
    SemiJoin,
    TopK,
    Union,
    bases_of,
    expressions_of,
    inputs_of,
    source_column,
)
from dataflow.schema import Table

Places = Mapping[int, int]
"""Where columns are, by where they were."""
Use = dict[int, set[int]]
"""Positions of columns, by table."""


def narrowed(node: Node, tables: Mapping[int, Table]) -> Node:
    """`node`, which is over all columns of these tables, over those that it uses, and the primary keys."""
    used: Use = {}
    _use(node, range(len(node.types)), used)

    def few(base: Base) -> tuple[Base, Places]:
        table = tables.get(base.table)
        if table is None:
            return base, _same(base)
        kept = sorted(used[base.table].union(base.primary_key))
        places = {place: number for number, place in enumerate(kept)}
        types, ids = tuple([base.types[each] for each in kept]), tuple([table.columns[each].id for each in kept])
        return Base(base.table, types, tuple([places[each] for each in base.primary_key]), base.name, ids), places

    return _placed(node, few)[0]


def fits(node: Node, tables: Mapping[int, Table]) -> bool:
    """Whether these tables have all that a narrowed node uses: its columns, with their types, and the primary keys.

    A table of which it uses whole rows must have no other columns.
    """
    whole = {base.table for base in _whole_rows(node)}
    return all(base.table in tables and _fits(base, tables[base.table], base.table in whole) for base in bases_of(node))


def _fits(base: Base, table: Table, is_whole: bool) -> bool:
    types = {column.id: column.type for column in table.columns}
    ids = base.columns or tuple(types)
    key = tuple([part.column_id for part in table.primary_key.parts])
    if is_whole and ids != tuple(types):
        return False
    return tuple(map(types.get, ids)) == base.types and tuple([ids[each] for each in base.primary_key]) == key


def _whole_rows(node: Node, is_seen: bool = True) -> Iterator[Base]:
    """The bases whose rows are seen as they are: in the result, or in the order of rows that compare equal."""
    match node:
        case Base():
            if is_seen:
                yield node
        case TopK() | Union():
            is_seen = True
        case Aggregate():
            is_seen = False
        case Join() | LeftJoin():
            is_seen = is_seen and node.outputs is None
    for number, each in enumerate(inputs_of(node)):
        yield from _whole_rows(each, is_seen and not (number and isinstance(node, SemiJoin)))


def widened(node: Node, tables: Mapping[int, Table], number: Callable[[Table], int] = lambda table: table.id) -> Node:
    """A narrowed node over all columns of these tables, which it fits; `number` says what a table is known by from then on."""

    def all_of(base: Base) -> tuple[Base, Places]:
        table = tables[base.table]
        names = tuple([column.name for column in table.columns])
        if not base.columns:
            return replace(base, table=number(table), column_names=names), _same(base)
        at = {column.id: place for place, column in enumerate(table.columns)}
        key = tuple([at[part.column_id] for part in table.primary_key.parts])
        wide = Base(number(table), tuple([column.type for column in table.columns]), key, base.name, column_names=names)
        return wide, {place: at[each] for place, each in enumerate(base.columns)}

    return _placed(node, all_of)[0]


def looked_up(node: Node, key: Columns) -> Use:
    """The columns by which rows of each table may be looked up for a view of `node` by `key`."""
    found: Use = {}
    _look(node, key, found)
    return found


# --- what is used


def _use(node: Node, wanted: Iterable[int], used: Use) -> None:
    """Of `node` these columns are wanted."""
    read = {column for each in expressions_of(node) for column in columns_of(each)}
    match node:
        case Base(table):
            used.setdefault(table, set()).update(wanted)
        case Join(inputs, equalities):
            _of_each(inputs, read.union(*equalities, wanted if node.outputs is None else ()), used, _use)
        case LeftJoin(left, right, equalities) | SemiJoin(left, right, equalities):
            width = len(left.types)
            passed = () if isinstance(node, LeftJoin) and node.outputs is not None else wanted
            _of_each((left, right), read.union(passed, *((mine, width + other) for mine, other in equalities)), used, _use)
        case Aggregate(inner, group):
            _use(inner, read.union(group), used)
        case TopK() | Union():  # ties fall by the whole row
            for each in inputs_of(node):
                _use(each, range(len(each.types)), used)


def _look(node: Node, columns: Iterable[int], found: Use) -> None:
    match node:
        case Base(table):
            found.setdefault(table, set()).update(columns)
        case Join(inputs, equalities):
            _of_each(inputs, _sources(node.outputs, columns).union(*equalities), found, _look)
        case LeftJoin(left, right, equalities) | SemiJoin(left, right, equalities):
            width = len(left.types)
            passed = _sources(node.outputs if isinstance(node, LeftJoin) else None, columns)
            _of_each((left, right), passed.union(*((mine, width + other) for mine, other in equalities)), found, _look)
        case Aggregate(inner, group):
            _look(inner, group, found)
        case TopK(inner, partition):
            _look(inner, {*columns, *partition}, found)
        case Union(inputs):
            for each in inputs:
                _look(each, columns, found)


def _sources(outputs: tuple[Expression, ...] | None, columns: Iterable[int]) -> set[int]:
    found = [source_column(outputs, column) for column in columns]
    return {each for each in found if each is not None}


def _of_each(inputs: tuple[Node, ...], positions: set[int], found: Use, go: Callable[[Node, Iterable[int], Use], None]) -> None:
    """Each input has its part of the concatenated row."""
    start = 0
    for each in inputs:
        end = start + len(each.types)
        go(each, {position - start for position in positions if start <= position < end}, found)
        start = end


# --- other columns


def _placed(node: Node, new: Callable[[Base], tuple[Base, Places]]) -> tuple[Node, Places]:
    """`node` over other bases, and where those of its columns are that are left."""
    match node:
        case Base():
            return new(node)
        case Join(inputs):
            made = [_placed(each, new) for each in inputs]
            places = _concatenated(inputs, made)
            equalities = tuple([(places[one], places[other]) for one, other in node.equalities])
            outputs = None if node.outputs is None else _moved_all(node.outputs, places)
            joined = Join(tuple([each for each, _ in made]), equalities, _moved(node.filter, places), outputs)
            return joined, places if outputs is None else _same(joined)
        case LeftJoin(left, right) | SemiJoin(left, right):
            (mine, mine_at), (other, other_at) = _placed(left, new), _placed(right, new)
            places = _concatenated((left, right), [(mine, mine_at), (other, other_at)])
            equalities = tuple([(mine_at[one], other_at[another]) for one, another in node.equalities])
            if isinstance(node, SemiJoin):
                return SemiJoin(mine, other, equalities, _moved(node.filter, places), node.negated), mine_at
            outputs = None if node.outputs is None else _moved_all(node.outputs, places)
            matched = LeftJoin(mine, other, equalities, _moved(node.filter, places), outputs)
            return matched, places if outputs is None else _same(matched)
        case Aggregate(inner):
            inner, places = _placed(inner, new)
            functions = [
                replace(each, arguments=_moved_all(each.arguments, places), order=tuple([_moved_order(order, places) for order in each.order]))
                for each in node.functions
            ]
            grouped = Aggregate(inner, tuple([places[column] for column in node.group]), tuple(functions))
            return grouped, _same(grouped)
        case TopK(inner):
            return replace(node, input=_placed(inner, new)[0]), _same(node)
        case Union(inputs):
            return Union(tuple([_placed(each, new)[0] for each in inputs])), _same(node)


def _concatenated(inputs: tuple[Node, ...], made: list[tuple[Node, Places]]) -> Places:
    places: dict[int, int] = {}
    start = new_start = 0
    for each, (new, own) in zip(inputs, made):
        places.update({start + old: new_start + place for old, place in own.items()})
        start, new_start = start + len(each.types), new_start + len(new.types)
    return places


def _same(node: Node) -> Places:
    return {place: place for place in range(len(node.types))}


def _moved(expression: Expression | None, places: Places) -> Expression | None:
    return None if expression is None else moved(expression, places)


def _moved_all(expressions: tuple[Expression, ...], places: Places) -> tuple[Expression, ...]:
    return tuple([moved(each, places) for each in expressions])


def _moved_order(order: Order, places: Places) -> Order:
    return replace(order, expression=moved(order.expression, places))
