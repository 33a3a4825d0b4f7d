"""The leading columns of an index that is not unique: a view by them, of the table itself.

It is read from the index as long as it does not repeat, and where its result is large. Rows come in the order in
which reading the index would have found them.
"""

from __future__ import annotations

from backend.execution.answering.decision.decision import Decision
from backend.execution.answering.decision.maintained import obstacle
from backend.execution.answering.decision.point import in_order, keyed
from backend.execution.evaluation.access import best_index
from controller.sql.plan import Query
from controller.sql.query.keys import KEY_COMBINATIONS_MAX, key_equality
from dataflow.plan.join_shape import conjuncts


def by_index(query: Query, one: Query | None) -> Decision | None:
    if one is None or one.table is None or one.filter is None:
        return None
    table = one.table
    values = {column.index: each for column, each in filter(None, map(key_equality, conjuncts(one.filter)))}
    index = best_index(table, values)
    if index is None:
        return None
    columns: set[int] = set()
    combinations = 1
    for column in index.fixed:
        combinations *= len(values[column])
        if combinations <= KEY_COMBINATIONS_MAX:
            columns.add(column)
    if not columns:
        return None
    order = (*in_order(table, index.index), *in_order(table, table.primary_key))
    found = keyed(one, columns, order)
    return None if obstacle(found) else Decision("index", found, one, scans=True)
