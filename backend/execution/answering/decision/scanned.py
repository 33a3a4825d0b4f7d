"""Any other SELECT over one table: its rows are read along the index that finds them, and given as they are found."""

from __future__ import annotations

from backend.execution.answering.decision.decision import Decision
from controller.sql.plan import Query


def scanned(query: Query, one: Query | None) -> Decision | None:
    return None if one is None else Decision("scan", query, one, scans=True, has_view=False)
