"""SELECT … INTO @a, @b: the one row of a result goes into user variables. No files are written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backend.execution.outcome import Done, Warning
from controller.sql.text.lexer import TokenKind
from dataflow.errors import Condition, InvalidStatement
from mysql_adapter.sessions.planned import plain_value, run_select
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_INTO = re.compile(r"\binto\s*(?:@[^@]|(?:outfile|dumpfile)\b)", re.IGNORECASE)
_VERBS = ("SELECT", "WITH", "TABLE", "VALUES", "(")


def may_select_into(sql: str) -> bool:
    """A quick look; `select_into` looks closer."""
    return ("@" in sql or "file" in sql.lower()) and _INTO.search(sql) is not None


async def select_into(session: Session, cursor: TokenCursor) -> Done | None:
    """The outcome, or None if the statement has no INTO of its own."""
    sql = cursor.sql
    if not cursor.at_any(*_VERBS):
        return None
    depth = 0
    while not cursor.at_end and not (depth == 0 and cursor.at("INTO")):
        token = cursor.next()
        depth += (token.text == "(") - (token.text == ")")
    start = cursor.token.start
    if not cursor.accept("INTO"):
        return None
    if cursor.accept_any("OUTFILE", "DUMPFILE"):
        raise InvalidStatement(Condition.SECURE_FILES)
    names: list[str] = []
    while True:
        token = cursor.next()
        if token.kind is not TokenKind.VARIABLE or token.text.startswith("@@"):
            raise cursor.error()
        names.append(token.text[1:].strip("`'\"").lower())
        if not cursor.accept(","):
            break
    result = await run_select(session, f"{sql[:start]} {sql[token.end :]}")
    if len(result.columns) != len(names):
        raise InvalidStatement(Condition.SET_COLUMN_COUNT)
    if not result.rows:
        nothing = Condition.NO_DATA
        return Done(warnings=(*result.warnings, Warning("Warning", nothing.code, nothing.template)))
    for name, value, column in zip(names, result.rows[0], result.columns):
        session.user_variables[name] = plain_value(session, (value, column.type))
    if len(result.rows) > 1:  # found out at the second row
        raise InvalidStatement(Condition.TOO_MANY_ROWS)
    return Done(affected=1, matched=1, warnings=result.warnings)
