"""A whole key of one table: a view of the table by that key.

All SELECTs by the same key share it, whatever columns they want. Rows come in the order in which reading the index
would have found them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from backend.execution.answering.decision.decision import Decision
from backend.execution.answering.decision.maintained import obstacle
from backend.execution.evaluation.access import candidates
from controller.sql.plan import Key, Query
from controller.sql.query.keys import KEY_COMBINATIONS_MAX, key_equality
from dataflow.expressions.expression import Column, Expression
from dataflow.functions import call
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Order
from dataflow.schema import Index, Table


def point(query: Query, one: Query | None) -> Decision | None:
    if one is None or one.table is None:
        return None
    table = one.table
    found = [each for each in map(key_equality, conjuncts(one.filter)) if each is not None]
    compared = {column.index for column, _ in found}
    for each in candidates(table, compared):
        if each.is_whole:
            columns = set(each.fixed)
            if prod(len(values) for column, values in found if column.index in columns) > KEY_COMBINATIONS_MAX:
                continue
            is_ordered = any(column.index in columns and len(values) > 1 for column, values in found)
            wanted = keyed(one, columns, in_order(table, each.index) if is_ordered else ())
            return None if obstacle(wanted) else Decision("point", wanted, one)
    return None


def keyed(one: Query, columns: set[int], order: tuple[Order, ...]) -> Query:
    """A query over one table by keys of `columns`; rows that ORDER BY leaves in any order come as `order` says."""
    keys: list[Key] = []
    rest: list[Expression] = []
    for condition in conjuncts(one.filter):
        found = key_equality(condition)
        if found is not None and found[0].index in columns:
            keys.append(Key(found[0].index, found[1]))
        else:
            rest.append(condition)
    filter_ = call("and", *rest) if len(rest) > 1 else rest[0] if rest else None
    return replace(one, keys=tuple(keys), filter=filter_, order_by=(*one.order_by, *order))


def in_order(table: Table, index: Index) -> tuple[Order, ...]:
    positions = {column.id: position for position, column in enumerate(table.columns)}
    parts = [(positions[part.column_id], part.descending) for part in index.parts if part.column_id in positions]
    return tuple([Order(Column(place, table.columns[place].type), descending) for place, descending in parts])
