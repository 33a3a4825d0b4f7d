"""The passes that decide how a query is answered: the first that has an answer decides.

Each is given the plan, and the same query over one stored table if it is one (`over_one_table`).
"""

from __future__ import annotations

from collections.abc import Callable

from backend.execution.answering.decision.by_column import by_column
from backend.execution.answering.decision.by_index import by_index
from backend.execution.answering.decision.by_range import by_range
from backend.execution.answering.decision.decision import Decision
from backend.execution.answering.decision.evaluated import evaluated
from backend.execution.answering.decision.first_rows import first_rows
from backend.execution.answering.decision.locked import locked
from backend.execution.answering.decision.maintained import maintained
from backend.execution.answering.decision.point import point
from backend.execution.answering.decision.scanned import scanned
from backend.execution.answering.decision.silent import silently_maintained
from controller.sql.plan import Query
from controller.sql.query.one_table import over_one_table

__all__ = ["CHANGE_PART_PASSES", "CHANGE_PASSES", "PART_PASSES", "PASSES", "Decision", "Pass", "decide"]

Pass = Callable[[Query, Query | None], Decision | None]

PASSES: tuple[Pass, ...] = (locked, point, first_rows, by_index, by_column, by_range, scanned, maintained, evaluated)
CHANGE_PASSES: tuple[Pass, ...] = (locked, scanned, silently_maintained, evaluated)
"""For the SELECT of a statement that changes rows: what it reads of one table it reads there."""
PART_PASSES: tuple[Pass, ...] = (maintained, evaluated)
"""For a query whose rows another part of its statement reads."""
CHANGE_PART_PASSES: tuple[Pass, ...] = (silently_maintained, evaluated)


def decide(query: Query, passes: tuple[Pass, ...] = PASSES) -> Decision:
    one = over_one_table(query)
    if one is not None and (one.table is None or one.table.id < 0):
        one = None  # its rows are in memory
    for each in passes:
        found = each(query, one)
        if found is not None:
            return found
    raise AssertionError("the last pass decides whatever is left")
