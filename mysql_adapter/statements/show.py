"""SHOW: which one it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from backend.execution.outcome import ResultSet
from dataflow.errors import Unsupported
from mysql_adapter.statements import accounts, show_schema, show_server
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

Show = Callable[["Session", TokenCursor, bool], Awaitable[ResultSet]]
"""(session, what follows, whether FULL was said)"""

_SHOWS: tuple[tuple[tuple[str, ...], Show], ...] = (
    (("DATABASES",), show_schema.databases),
    (("SCHEMAS",), show_schema.databases),
    (("TABLE", "STATUS"), show_schema.table_status),
    (("TABLES",), show_schema.tables),
    (("COLUMNS",), show_schema.columns),
    (("FIELDS",), show_schema.columns),
    (("INDEX",), show_schema.index),
    (("INDEXES",), show_schema.index),
    (("KEYS",), show_schema.index),
    (("CREATE", "TABLE"), show_schema.create_table),
    (("CREATE", "VIEW"), show_schema.create_view),
    (("CREATE", "DATABASE"), show_schema.create_database),
    (("CREATE", "SCHEMA"), show_schema.create_database),
    (("CREATE", "USER"), accounts.create_user),
    (("VARIABLES",), show_server.variables),
    (("STATUS",), show_server.status),
    (("WARNINGS",), show_server.warnings),
    (("ERRORS",), show_server.errors),
    (("COUNT",), show_server.count),
    (("ENGINES",), show_server.engines),
    (("STORAGE", "ENGINES"), show_server.engines),
    (("ENGINE",), show_server.engine),
    (("COLLATION",), show_server.collation),
    (("CHARACTER", "SET"), show_server.character_set),
    (("CHARSET",), show_server.character_set),
    (("GRANTS",), accounts.grants),
    (("PROCESSLIST",), show_server.processlist),
    (("PRIVILEGES",), show_server.privileges),
    (("PLUGINS",), show_server.plugins),
    (("TRIGGERS",), show_server.triggers),
    (("EVENTS",), show_server.events),
    (("PROCEDURE", "STATUS"), show_server.routines),
    (("FUNCTION", "STATUS"), show_server.routines),
    (("OPEN", "TABLES"), show_server.open_tables),
    (("MASTER", "STATUS"), show_server.nothing),
    (("BINARY", "LOG", "STATUS"), show_server.nothing),
    (("BINARY", "LOGS"), show_server.nothing),
    (("MASTER", "LOGS"), show_server.nothing),
    (("SLAVE", "STATUS"), show_server.nothing),
    (("REPLICA", "STATUS"), show_server.nothing),
    (("SLAVE", "HOSTS"), show_server.nothing),
    (("REPLICAS",), show_server.nothing),
    (("PROFILES",), show_server.nothing),
)


async def show(session: Session, cursor: TokenCursor) -> ResultSet:
    cursor.expect("SHOW")
    cursor.accept("EXTENDED")
    full = cursor.accept("FULL")
    scope = cursor.accept_any("GLOBAL", "SESSION", "LOCAL")
    for words, answer in _SHOWS:
        if cursor.accept(*words):
            if answer is show_server.variables and scope == "GLOBAL":
                return await show_server.global_variables(session, cursor, full)
            if answer is show_server.status and scope == "GLOBAL":
                return await show_server.global_status(session, cursor, full)
            return await answer(session, cursor, full)
    if cursor.at("CREATE"):
        raise Unsupported("SHOW " + " ".join(cursor.rest().split()[:2]).upper())
    raise cursor.error()
