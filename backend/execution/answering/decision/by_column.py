"""Values of columns without an index: a view of the table by them.

All rows would have to be read each time; they are for the first few times, as keeping them takes memory. A worker keeps
a table that is small beside its memory.
"""

from __future__ import annotations

from math import prod

from backend.execution.answering.decision.decision import SCANS_BEFORE_VIEW, Decision
from backend.execution.answering.decision.maintained import obstacle
from backend.execution.answering.decision.point import in_order, keyed
from backend.execution.evaluation.access import choose
from controller.sql.plan import Query
from controller.sql.query.keys import KEY_COMBINATIONS_MAX, key_equality
from dataflow.plan.join_shape import conjuncts


def by_column(query: Query, one: Query | None) -> Decision | None:
    if one is None or one.table is None or one.filter is None:
        return None
    path = choose(one.table, one.filter)
    if path.comparisons or path.equalities:
        return None  # reading the index is as good
    values = [each for each in map(key_equality, conjuncts(one.filter)) if each is not None]
    if not values or prod(len(each) for _, each in values) > KEY_COMBINATIONS_MAX:
        return None
    found = keyed(one, {column.index for column, _ in values}, in_order(one.table, one.table.primary_key))
    if obstacle(found):
        return None
    return Decision("column", found, one, scans=True, uses_before_view=SCANS_BEFORE_VIEW)
