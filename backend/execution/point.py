"""A SELECT of at most one row for each key, as a query that a view can answer.

`WHERE id = ?` over one table needs no graph to be planned; but asked again and again it is a
view like any other, of the table itself by that key. All such SELECTs share it, whatever
columns they want.
"""

from __future__ import annotations

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
    keys: list[tuple[Column, tuple[Expression, ...]]] = []
    rest: list[Expression] = []
    for condition, each in zip(conditions, found):
        if each is not None and each[0].index in columns:
            keys.append(each)
        else:
            rest.append(condition)
    order = select.order_by
    if any(len(values) > 1 for _, values in keys):  # in the order of the index, as if it had been read
        order = (*order, *[_order(table, positions[part.column_id], part.descending) for part in index.parts])
    return Query(
        _base(table, positions),
        (table,),
        tuple([Key(column.index, values) for column, values in keys]),
        call("and", *rest) if len(rest) > 1 else rest[0] if rest else None,
        outputs=select.outputs,
        columns=select.columns,
        order_by=order,
        limit=select.limit,
        offset=select.offset,
        distinct=select.distinct,
        count_found_rows=select.count_found_rows,
    )


def _order(table: Table, position: int, descending: bool) -> OrderItem:
    return OrderItem(Column(position, table.columns[position].type), descending)


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
