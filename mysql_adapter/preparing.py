"""PREPARE and EXECUTE of a session's statements, whether they came as text or as commands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.execution.outcome import Answer, ResultSet
from controller.catalog import Catalog
from controller.privileges import check_plan, check_text
from controller.sql.lexer import leading_words
from controller.sql.plan import OutputColumn, Plan, Query, Select
from dataflow.errors import Condition, InvalidStatement
from dataflow.types import SqlType
from mysql_adapter import dispatch
from mysql_adapter.parameters import Typed, type_code
from mysql_adapter.planned import execute_plan, settings_for
from mysql_adapter.prepared import Prepared
from mysql_adapter.statement_limits import time_limit_s
from mysql_adapter.statements.accounts import check_password
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.session import Session

PREPARED_MAX = 16382


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
        columns = plan.statement.columns if isinstance(plan.statement, Select | Query) else ()
    elif dispatch.only_reads(words):
        outcome = await handler(session, TokenCursor(statement, session.settings))
        columns = outcome.columns if isinstance(outcome, ResultSet) else ()
    return session.keep_prepared(statement, parameter_types, columns, handler is None)


async def execute(session: Session, prepared: Prepared, values: Sequence[Typed], stream: bool = False) -> Answer:
    """In the database that it was prepared in, which is also what DATABASE() says meanwhile."""
    database, session.database = session.database, prepared.database
    try:
        return await _execute(session, prepared, values, stream)
    finally:
        if session.database == prepared.database:  # else the statement has dropped it
            session.database = database


async def _execute(session: Session, prepared: Prepared, values: Sequence[Typed], stream: bool) -> Answer:
    if not prepared.planned:
        return await session.run(prepared.sql)
    session.statement, session.statement_started = prepared.sql, time.time()
    session.warnings = ()
    environment, settings = session.environment, settings_for(session, prepared.sql)

    async def attempt(catalog: Catalog) -> Answer:
        codes = tuple(type_code(typed) for typed in values)
        plan = environment.plans.plan_prepared(prepared.sql, catalog, session.database, settings, codes)
        check_plan(session, plan, prepared.sql)
        if stream and isinstance(plan.statement, Select | Query):
            session.connection.limit_time(time_limit_s(session, prepared.sql))
        return await execute_plan(session, plan, [value for value, _ in values], stream)

    return session.ran(await environment.attempt(attempt))


async def plan_prepared(session: Session, sql: str) -> Plan:
    plans, settings = session.environment.plans, settings_for(session, sql)

    def planned(catalog: Catalog) -> Plan:
        try:
            plan = plans.plan_prepared(sql, catalog, session.database, settings)
        except InvalidStatement:
            check_text(session, sql)
            raise
        check_plan(session, plan, sql)
        return plan

    return await session.environment.with_catalog(planned)
