"""sql_select_limit: the rows that a SELECT without a LIMIT of its own gives to the client.

JDBC's setMaxRows and the shell's --safe-updates set it. Subqueries and INSERT … SELECT do not know it.
"""

from __future__ import annotations

from dataclasses import replace

from backend.execution.outcome import Answer, ResultSet, RowStream
from controller.sql.plan import Plan, Query
from dataflow.values.types import Value

NO_LIMIT = (1 << 64) - 1


def select_limit(value: Value) -> int | None:
    """What the variable's value means; None for no limit."""
    return value if isinstance(value, int) and value < NO_LIMIT else None


def limited(answer: Answer, plan: Plan, limit: int) -> Answer:
    statement = plan.statement
    if not isinstance(statement, Query) or statement.limit is not None:
        return answer
    if isinstance(answer, RowStream):
        answer.limit(limit)
    elif isinstance(answer, ResultSet):
        return replace(answer, rows=answer.rows[:limit])
    return answer
