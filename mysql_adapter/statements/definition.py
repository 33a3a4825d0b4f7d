"""CREATE, ALTER, DROP, TRUNCATE, RENAME: checked here for what can't be handed on, then handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.execution.outcome import Answer
from controller.definition_privileges import check_definition
from controller.privileges import check_global
from controller.sql.definitions.view_definition import at_view, with_definer
from dataflow.errors import Condition, InvalidStatement, Unsupported
from mysql_adapter.sessions import table_locks
from mysql_adapter.statements.create_select import create_select, run_create_select
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.maintenance import maintain_partitions, maintained_partitions
from mysql_adapter.wire.parameters import Typed

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_UNSUPPORTED = frozenset(
    ["ROLE", "FUNCTION", "PROCEDURE", "TRIGGER", "EVENT", "SERVER", "TABLESPACE", "LOGFILE", "RESOURCE", "INSTANCE"]
)


def check_characters(sql: str) -> None:
    """What is stored is text: bytes that are none in the client's character set stop here."""
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        shown = "".join(f"\\x{ord(each) & 0xFF:02X}" for each in sql[error.start : error.end])
        raise InvalidStatement(Condition.INVALID_STRING, "utf8mb4", shown) from None


async def define(session: Session, cursor: TokenCursor, values: Sequence[Typed] = ()) -> Answer:
    """`values` are those of the parameters that the SELECT of CREATE TABLE … SELECT has."""
    await session.environment.with_catalog(lambda _: check_definition(session, cursor))
    table_locks.check_definition(session, cursor)
    check_characters(cursor.sql)
    verb = cursor.next().upper
    if cursor.token.upper in _UNSUPPORTED:
        raise Unsupported(f"{verb} {cursor.token.upper}")
    parts = create_select(cursor) if verb == "CREATE" else None
    if parts is not None:
        return await run_create_select(session, parts, values)
    if verb == "ALTER" and (name := maintained_partitions(cursor)) is not None:
        return await maintain_partitions(session, cursor, name)
    sql = cursor.sql
    if verb in ("CREATE", "ALTER") and at_view(cursor):
        sql, definer = with_definer(cursor, session.account.name)
        if definer != session.account.name:
            check_global(session, "SUPER", "SET_USER_ID")
    done = await session.define(sql)
    table_locks.forget_gone(session)
    database = session.database
    if verb == "DROP" and database is not None and database not in session.environment.catalog().databases:
        session.database = None
    return done
