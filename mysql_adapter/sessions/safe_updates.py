"""sql_safe_updates: an UPDATE or DELETE has a LIMIT, or finds the rows that it changes by a key (error 1175 otherwise).

Of several tables, each that is changed has to be found so: a constant, or what equals one, is compared with the first column of one of
its keys. MySQL also wants keys for tables that are only read.
"""

from __future__ import annotations

from collections.abc import Iterable

from backend.execution.evaluation.access import choose, terms
from controller.sql.plan import Delete, Directed, Query, Statement, Update
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Column, Expression
from dataflow.plan.node import Join, LeftJoin, Node, SemiJoin
from dataflow.schema import Table


def check_safe(statement: Statement) -> None:
    if not _is_safe(statement):
        raise InvalidStatement(Condition.SAFE_UPDATES)


def _is_safe(statement: Statement) -> bool:
    match statement:
        case Update() | Delete():
            path = choose(statement.table, statement.where)
            return statement.limit is not None or bool(path.equalities or path.comparisons)
        case Directed(query=query, changes=changes):
            compared = _compared_by(query)
            return query.limit is not None or all(_has_key(change.table, start, query, compared) for change, start in changes)
        case _:
            return True


def _has_key(table: Table, start: int, query: Query, compared: set[int]) -> bool:
    """Whether one of the keys of a table whose row begins at output `start` begins with a column that is compared."""
    places = {column.id: start + place for place, column in enumerate(table.columns)}
    first = [query.outputs[places[index.parts[0].column_id]] for index in (table.primary_key, *table.indexes)]
    return any(isinstance(each, Column) and each.index in compared for each in first)


def _compared_by(query: Query) -> set[int]:
    """The columns of the query's node that are compared with constants."""
    return _compared(query.node, {key.column for key in query.keys} | _in(query.filter))


def _compared(node: Node, known: set[int]) -> set[int]:
    """The columns of the node that are compared with constants, where those that are `known` are."""
    match node:
        case Join(inputs=inputs, equalities=equalities, filter=condition, outputs=outputs):
            found = _read(outputs, known) | _in(condition)
            return _shown(outputs, _closed(inputs, equalities, found))
        case LeftJoin(left=left, right=right, equalities=equalities, outputs=outputs):
            pairs = [(one, len(left.types) + other) for one, other in equalities]
            return _shown(outputs, _closed((left, right), pairs, _read(outputs, known)))
        case SemiJoin(left=left):
            return _compared(left, known)
        case _:
            return known


def _closed(inputs: Iterable[Node], equalities: Iterable[tuple[int, int]], known: set[int]) -> set[int]:
    """Of the concatenated row: what is compared within an input, or equals a column that is compared."""
    found = set(known)
    offset = 0
    for node in inputs:
        within = range(offset, offset + len(node.types))
        found |= {offset + place for place in _compared(node, {place - offset for place in known if place in within})}
        offset = within.stop
    pairs = list(equalities)
    for _ in pairs:
        for one, other in pairs:
            if one in found or other in found:
                found |= {one, other}
    return found


def _read(outputs: tuple[Expression, ...] | None, places: set[int]) -> set[int]:
    """The columns that these outputs are."""
    if outputs is None:
        return places
    return {each.index for place, each in enumerate(outputs) if place in places and isinstance(each, Column)}


def _shown(outputs: tuple[Expression, ...] | None, columns: set[int]) -> set[int]:
    """The outputs that are these columns."""
    if outputs is None:
        return columns
    return {place for place, each in enumerate(outputs) if isinstance(each, Column) and each.index in columns}


def _in(condition: Expression | None) -> set[int]:
    return set() if condition is None else {term.column for term in terms(condition)}
