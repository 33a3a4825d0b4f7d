"""PREPARE and EXECUTE of a session's statements, whether they came as text or as commands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.execution.outcome import Answer, ResultSet
from controller.sql.plan import OutputColumn, Query
from controller.sql.text.lexer import leading_words
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import SqlType
from mysql_adapter.sessions import dispatch
from mysql_adapter.sessions.planned import plan_prepared, run_prepared
from mysql_adapter.sessions.prepared import PREPARED_MAX, Prepared
from mysql_adapter.statements.accounts import check_password
from mysql_adapter.statements.create_select import create_select
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.definition import define
from mysql_adapter.wire.parameters import Typed

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


async def prepare(session: Session, sql: str) -> Prepared:
    if len(session.prepared) >= PREPARED_MAX:
        raise InvalidStatement(Condition.TOO_MANY_PREPARED, PREPARED_MAX)
    (statement,) = dispatch.statements_of(sql, session.settings.backslash_escapes, False)
    if session.account.expired:
        check_password(session, statement)
    session.warnings = ()
    parameter_types: tuple[SqlType, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    words = leading_words(statement, 2)
    handler = dispatch.handler_of(words)
    if words[:1] == ("LOAD",):
        raise InvalidStatement(Condition.NOT_PREPARABLE)
    if handler is None:
        plan = await plan_prepared(session, statement)
        parameter_types = plan.parameter_types
        columns = plan.statement.columns if isinstance(plan.statement, Query) else ()
    elif words[:1] == ("CREATE",) and (parts := create_select(TokenCursor(statement, session.settings))) is not None:
        parameter_types = (await plan_prepared(session, parts.query)).parameter_types
    elif dispatch.only_reads(words):
        outcome = await handler(session, TokenCursor(statement, session.settings))
        columns = outcome.columns if isinstance(outcome, ResultSet) else ()
    return session.keep_prepared(statement, parameter_types, columns, handler is None)


async def execute(session: Session, prepared: Prepared, values: Sequence[Typed]) -> Answer:
    """In the database that it was prepared in, which is also what DATABASE() says meanwhile."""
    database, session.database = session.database, prepared.database
    try:
        return await _execute(session, prepared, values)
    finally:
        if session.database == prepared.database:  # else the statement has dropped it
            session.database = database


async def _execute(session: Session, prepared: Prepared, values: Sequence[Typed]) -> Answer:
    if not prepared.planned and not values:
        return await session.run(prepared.sql)
    session.statement, session.statement_started = prepared.sql, time.time()
    session.warnings = ()
    if not prepared.planned:
        return session.ran(await define(session, TokenCursor(prepared.sql, session.settings), values))
    return session.ran(await run_prepared(session, prepared.sql, values, stream=True))
