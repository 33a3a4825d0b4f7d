"""sql_select_limit: the rows that a SELECT without a LIMIT of its own gives to the client.

JDBC's setMaxRows and the shell's --safe-updates set it. Subqueries and INSERT … SELECT do not know it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from backend.execution.outcome import Outcome, ResultSet
from controller.sql.plan import Plan, Query, Select
from dataflow.types import Value

NO_LIMIT = (1 << 64) - 1


def select_limit(value: Value) -> int | None:
    """What the variable's value means; None for no limit."""
    return value if isinstance(value, int) and value < NO_LIMIT else None


async def limited(outcome: Awaitable[Outcome], plan: Plan, limit: int) -> Outcome:
    found = await outcome
    statement = plan.statement
    if isinstance(found, ResultSet) and isinstance(statement, Select | Query) and statement.limit is None:
        return replace(found, rows=found.rows[:limit])
    return found
