"""The decision how a query is answered: the node of its view, and the reader of its table where no view answers."""

from __future__ import annotations

from dataclasses import dataclass

from controller.sql.plan import Query

USES_BEFORE_VIEW = 2
"""A query that comes so often with the same constants has a view."""
SCANS_BEFORE_VIEW = 5
"""So many times all rows of a table are read for a few of them, before they are kept."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`query` is the plan in the form whose node's rows are looked up by its keys, in a view or from the base tables.

    `one` is the same over the rows of one stored table, where it reads no more than that. With `scans`, where no view
    answers, those rows are read as they are found, and a large result is given while they are. `has_view` says
    whether a view may answer at all.
    """

    way: str
    query: Query
    one: Query | None = None
    scans: bool = False
    has_view: bool = True
    uses_before_view: int = USES_BEFORE_VIEW
