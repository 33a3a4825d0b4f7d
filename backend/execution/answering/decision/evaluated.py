"""The last decision: evaluate the query from the base tables each time."""

from __future__ import annotations

from backend.execution.answering.decision.decision import Decision
from controller.sql.plan import Query


def evaluated(query: Query, one: Query | None) -> Decision | None:
    return Decision("evaluation", query, one, has_view=False)
