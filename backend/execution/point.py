"""A SELECT over one table as a query that a view can answer.

`WHERE id = ?` over one table needs no graph to be planned; but asked again and again it is a
view like any other, of the table itself by that key. All such SELECTs share it, whatever
columns they want. The same is true of the columns of any other index; and of a range of a
column without one, where all rows would have to be read each time. Rows come in the order in
which reading the index would have found them.
"""

from __future__ import annotations

from backend.execution.access import choose
from controller.sql.plan import Key, OrderItem, Query, Select
from controller.sql.query.keys import key_equality
from dataflow.expression import Column, Expression
from dataflow.functions import call
from dataflow.join_shape import conjuncts
from dataflow.node import Base
from dataflow.schema import Index, Table


def point_query(select: Select) -> Query | None:
    """The same SELECT by a whole key of its table; None if its WHERE does not name one, or rows are locked."""
    table = select.table
    if table is None or table.id < 0 or select.locking or select.group_by or select.aggregates:
        return None
    positions = {column.id: position for position, column in enumerate(table.columns)}
    conditions = conjuncts(select.where)
    found = [key_equality(each) for each in conditions]
    compared = {each[0].index for each in found if each is not None}
    for index in (table.primary_key, *table.indexes):
        columns = {positions[part.column_id] for part in index.parts}
        if columns <= compared and _is_key(index):
            break
    else:
        return None
    keys = [each for each in found if each is not None and each[0].index in columns]
    is_ordered = any(len(values) > 1 for _, values in keys)
    return _query(select, table, columns, _in_order(table, index) if is_ordered else ())


def scanned_query(select: Select) -> Query | None:
    """The same SELECT by the leading columns of the index that finds its rows, or by none where no index does.

    None where reading the index is as good, or rows are locked.
    """
    table = select.table
    if table is None or table.id < 0 or select.locking or select.group_by or select.aggregates or select.where is None:
        return None
    path = choose(table, select.where)
    if path.comparisons and not path.equalities:
        return None
    compared = {each[0].index for each in map(key_equality, conjuncts(select.where)) if each is not None}
    columns = {term.column for term in path.equalities}
    if not columns <= compared:
        return None
    order = _in_order(table, path.index) if columns else ()
    return _query(select, table, columns, (*order, *_in_order(table, table.primary_key)))


def _query(select: Select, table: Table, columns: set[int], order: tuple[OrderItem, ...]) -> Query:
    positions = {column.id: position for position, column in enumerate(table.columns)}
    keys: list[tuple[Column, tuple[Expression, ...]]] = []
    rest: list[Expression] = []
    for condition in conjuncts(select.where):
        found = key_equality(condition)
        if found is not None and found[0].index in columns:
            keys.append(found)
        else:
            rest.append(condition)
    return Query(
        _base(table, positions),
        (table,),
        tuple([Key(column.index, values) for column, values in keys]),
        call("and", *rest) if len(rest) > 1 else rest[0] if rest else None,
        outputs=select.outputs,
        columns=select.columns,
        order_by=(*select.order_by, *order),
        limit=select.limit,
        offset=select.offset,
        distinct=select.distinct,
        count_found_rows=select.count_found_rows,
    )


def _in_order(table: Table, index: Index) -> tuple[OrderItem, ...]:
    positions = {column.id: position for position, column in enumerate(table.columns)}
    parts = [(positions[part.column_id], part.descending) for part in index.parts if part.column_id in positions]
    return tuple([OrderItem(Column(place, table.columns[place].type), descending) for place, descending in parts])


def _is_key(index: Index) -> bool:
    plain = all(part.prefix is None for part in index.parts)
    return index.unique and plain and not index.building and index.kind in ("BTREE", "HASH")


def _base(table: Table, positions: dict[int, int]) -> Base:
    return Base(
        table.id,
        tuple([column.type for column in table.columns]),
        tuple([positions[part.column_id] for part in table.primary_key.parts]),
        f"{table.database}.{table.name}",
    )
