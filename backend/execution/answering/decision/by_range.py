"""A range of a column without an index: a view of the table in the order of that column.

All rows would have to be read each time; they are for the first few times, as keeping them in order takes memory.
"""

from __future__ import annotations

from backend.execution.answering.alternatives import alternatives_of
from backend.execution.answering.decision.decision import SCANS_BEFORE_VIEW, Decision
from backend.execution.answering.decision.maintained import obstacle
from backend.execution.answering.decision.point import in_order, keyed
from backend.execution.answering.ranges import range_of
from backend.execution.evaluation.access import choose
from controller.sql.plan import Query
from dataflow.expressions.expression import parameters_of


def by_range(query: Query, one: Query | None) -> Decision | None:
    if one is None or one.table is None or one.filter is None or not parameters_of(one.filter):
        return None
    path = choose(one.table, one.filter)
    if path.comparisons or path.equalities:
        return None  # reading the index is as good
    found = keyed(one, set(), in_order(one.table, one.table.primary_key))
    if obstacle(found) or alternatives_of(found, found.filter) is not None or range_of(found, (), found.filter) is None:
        return None
    return Decision("range", found, one, scans=True, uses_before_view=SCANS_BEFORE_VIEW)
