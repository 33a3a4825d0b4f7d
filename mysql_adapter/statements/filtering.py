"""LIKE and WHERE behind a SHOW: its rows as a table of their own, to be selected from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backend.execution.outcome import ResultSet
from controller.catalog import Catalog, CatalogDatabase
from controller.sql.plan import OutputColumn
from controller.sql.planner import PlanCache
from dataflow.schema import TableColumn
from dataflow.values.types import Row
from mysql_adapter.information_schema.virtual import table_of
from mysql_adapter.sessions.facts import fact
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_PLACE = "show"
_TABLE = -1000


async def filtered(
    session: Session, cursor: TokenCursor, columns: tuple[OutputColumn, ...], rows: list[Row], like_column: int = 0
) -> ResultSet:
    """`rows` that fulfil the LIKE or WHERE at `cursor`, which ends the statement."""
    if cursor.accept("LIKE"):
        pattern = cursor.string()
        cursor.expect_end()
        matches = like_pattern(pattern)
        return ResultSet(columns, [row for row in rows if matches.fullmatch(str(row[like_column]))])
    if cursor.accept("WHERE"):
        return await _where(session, cursor.rest(), columns, rows)
    cursor.expect_end()
    return ResultSet(columns, rows)


async def _where(session: Session, condition: str, columns: tuple[OutputColumn, ...], rows: list[Row]) -> ResultSet:
    definition = table_of(
        _TABLE,
        _PLACE,
        _PLACE,
        tuple(TableColumn(number + 1, column.name, column.type, column.nullable) for number, column in enumerate(columns)),
    )
    catalog = Catalog.of((CatalogDatabase(_PLACE),), (definition,), -1, 1)
    sql = f"SELECT * FROM `{_PLACE}` WHERE {condition}"
    # The cache would keep a plan for a table that is another one in the next SHOW.
    plan, values = PlanCache().plan_text(sql, catalog, _PLACE, session.settings)
    given = [*values, *(fact(session, name) for name in plan.facts)]
    outcome = await session.environment.database.execute(plan, given, None, session.modes, {_TABLE: rows})
    assert isinstance(outcome, ResultSet)
    return ResultSet(columns, outcome.rows, outcome.warnings)


def like_pattern(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern in the case-insensitive collation of names."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "\\" and position + 1 < len(pattern):
            position += 1
            parts.append(re.escape(pattern[position]))
        elif letter == "%":
            parts.append(".*")
        elif letter == "_":
            parts.append(".")
        else:
            parts.append(re.escape(letter))
        position += 1
    return re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
