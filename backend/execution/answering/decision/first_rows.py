"""ORDER BY … LIMIT over one table: the first rows take more than finding them, so a view keeps them, or their order."""

from __future__ import annotations

from backend.execution.answering.decision.decision import Decision
from backend.execution.answering.decision.maintained import obstacle
from controller.sql.plan import Query


def first_rows(query: Query, one: Query | None) -> Decision | None:
    if one is None or not query.order_by or query.limit is None or obstacle(query):
        return None
    return Decision("first rows", query, one)
