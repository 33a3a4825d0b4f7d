"""FOR UPDATE and FOR SHARE: rows are locked where they are, so no view answers."""

from __future__ import annotations

from backend.execution.answering.decision.decision import Decision
from controller.sql.plan import Query


def locked(query: Query, one: Query | None) -> Decision | None:
    if not query.locking:
        return None
    return Decision("locked", query, one, scans=one is not None, has_view=False)
