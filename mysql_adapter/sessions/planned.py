"""Statements about data: planned against the catalog, checked against the rights, executed for a session.

Who asks for a stream may get one: a large result whose rows are still being read. Everybody else
gets all rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from backend.execution.outcome import Answer, Done, ResultSet, RowStream, Warning, warnings_of
from backend.execution.pace import aside
from controller.catalog import Catalog
from controller.privileges import check_plan, check_text
from controller.sql.plan import Insert, Plan, Query
from controller.sql.planner import tables_of
from controller.sql.settings import Settings
from controller.sql.text.parameter_types import code_of
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.notices import Said, listen
from dataflow.expressions.user_variables import LAST_INSERT_ID, UserVariables
from dataflow.functions.waiting import Needed, WaitingCalls
from dataflow.values.types import TEMPORALS, Row, Value
from mysql_adapter.sessions import table_locks
from mysql_adapter.sessions.facts import fact
from mysql_adapter.sessions.safe_updates import check_safe
from mysql_adapter.sessions.select_limit import limited
from mysql_adapter.sessions.statement_limits import time_limit_s
from mysql_adapter.sessions.waiting import answer
from mysql_adapter.wire.cells import value_text
from mysql_adapter.wire.parameters import Typed, type_code

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


async def run_planned(session: Session, sql: str, stream: bool = False, unborn: str = "") -> Answer:
    """`unborn` is the stored name of a temporary table that only what is inserted into may mean."""
    plans = session.environment.plans
    settings = replace(settings_for(session, sql), unborn=unborn)

    async def attempt(catalog: Catalog) -> Answer:
        try:
            plan, values = aside(len(sql), lambda: plans.plan_text(sql, catalog, session.database, settings))
        except InvalidStatement:
            check_text(session, sql)
            table_locks.check_query(session, sql, None)
            raise
        check_plan(session, plan, sql)
        table_locks.check_query(session, sql, plan)
        if stream and isinstance(plan.statement, Query):
            session.connection.limit_time(time_limit_s(session, sql))
        session.counted = session.environment.statements.of(plan, sql, session.database, values)
        return await execute_plan(session, plan, values, stream)

    return _counted(session, await session.environment.attempt(attempt))


async def run_prepared(
    session: Session, sql: str, values: Sequence[Typed], stream: bool = False, unborn: str = ""
) -> Answer:
    """As `run_planned`, with `values` for the `?` of the statement."""
    environment, settings = session.environment, replace(settings_for(session, sql), unborn=unborn)
    codes = tuple([type_code(typed) for typed in values])

    async def attempt(catalog: Catalog) -> Answer:
        plan = aside(len(sql), lambda: environment.plans.plan_prepared(sql, catalog, session.database, settings, codes))
        check_plan(session, plan, sql)
        table_locks.check_query(session, sql, plan)
        if stream and isinstance(plan.statement, Query):
            session.connection.limit_time(time_limit_s(session, sql))
        plain = [value for value, _ in values]
        session.counted = environment.statements.of(plan, sql, session.database, plain, is_prepared=True)
        return await execute_plan(session, plan, plain, stream)

    return _counted(session, await environment.attempt(attempt))


def _counted(session: Session, answer: Answer) -> Answer:
    if session.counted is not None and not isinstance(answer, Done):
        session.counted.answered(answer)
        is_from_view = isinstance(answer, ResultSet) and answer.from_view
        session.asked_count += is_from_view
        session.evaluated_count += not is_from_view
    return answer


async def plan_prepared(session: Session, sql: str, values: Sequence[Typed] | None = None) -> Plan:
    """The plan of a statement with `?`, for such values if they are known."""
    plans, settings = session.environment.plans, settings_for(session, sql)
    codes = None if values is None else tuple([type_code(typed) for typed in values])

    def planned(catalog: Catalog) -> Plan:
        try:
            plan = aside(len(sql), lambda: plans.plan_prepared(sql, catalog, session.database, settings, codes))
        except InvalidStatement:
            check_text(session, sql)
            table_locks.check_query(session, sql, None)
            raise
        check_plan(session, plan, sql)
        table_locks.check_query(session, sql, None)
        return plan

    return await session.environment.with_catalog(planned)


async def execute_plan(session: Session, plan: Plan, values: Sequence[Value], stream: bool = False) -> Answer:
    if "waiting_calls" not in plan.facts:
        return await _execute_once(session, plan, values, stream)
    calls = session.waiting_calls = WaitingCalls()
    while True:
        try:
            return await _execute_once(session, plan, values, False)
        except Needed as needed:
            calls.add(await answer(session, needed))


async def _execute_once(session: Session, plan: Plan, values: Sequence[Value], stream: bool) -> Answer:
    if isinstance(plan.statement, Query):
        heard = listen()
        found = _with_warnings(await _execute_plan(session, plan, values, stream), heard, session)
    else:
        found = await _execute_plan(session, plan, values, stream)
    return found if session.select_limit is None else limited(found, plan, session.select_limit)


async def _execute_plan(session: Session, plan: Plan, values: Sequence[Value], stream: bool) -> Answer:
    session.select_count += isinstance(plan.statement, Query)
    facts = [fact(session, name) for name in plan.facts]
    if facts:
        values = [*values, *facts]
    environment = session.environment
    database = environment.database
    tables = tables_of(plan)
    memory = {each.id: await environment.virtual_rows(session, each) for each in tables if each.id < 0}
    transaction = session.statement_transaction() if len(memory) < len(tables) else None
    if not isinstance(plan.statement, Query):
        session.check_writable(tuple(each.id for each in tables))
        if session.variables.get("sql_safe_updates"):
            check_safe(plan.statement)
    variables = [value for value in list[object](facts) if isinstance(value, UserVariables)]
    for first in plan.first:
        await database.execute(replace(plan, statement=first), values, None, session.modes)
        for each in variables:
            each.begin()
    execute = database.stream if stream else database.execute
    answer = await execute(plan, values, transaction, session.modes, memory, session.lock_timeout_s)
    if isinstance(answer, Done) and isinstance(plan.statement, Insert) and plan.statement.is_silent:
        answer = replace(answer, generated_id=None)
    for each in variables:
        number = each.changed.pop(LAST_INSERT_ID, None)
        session.user_variables.update(each.changed)
        if isinstance(number, int):
            session.last_insert_id = number
            if isinstance(answer, Done) and answer.generated_id is None:  # a generated number comes before that of LAST_INSERT_ID(n)
                answer = replace(answer, last_insert_id=number, generated_id=number)
    return answer


def _with_warnings(answer: Answer, heard: list[Said], session: Session) -> Answer:
    """What was said while the SELECT was evaluated, after what it says itself."""
    if isinstance(answer, RowStream):
        before = answer.warnings
        answer.warnings = lambda: (*before(), *_warnings(heard, session))
    elif heard and isinstance(answer, ResultSet):
        return replace(answer, warnings=(*answer.warnings, *_warnings(heard, session)))
    return answer


def _warnings(heard: list[Said], session: Session) -> list[Warning]:
    zero = Condition.DIVISION_BY_ZERO
    wanted = [each for each in heard if each[0] is not zero or session.modes.error_for_division_by_zero]
    return warnings_of(wanted)


async def run_insert(session: Session, sql: str, values: Sequence[Typed] = (), unborn: str = "") -> Done:
    if values:
        outcome = await run_prepared(session, sql, values, unborn=unborn)
    else:
        outcome = await run_planned(session, sql, unborn=unborn)
    assert isinstance(outcome, Done)
    return outcome


async def run_select(session: Session, sql: str) -> ResultSet:
    outcome = await run_planned(session, sql)
    assert isinstance(outcome, ResultSet)
    return outcome


def settings_for(session: Session, sql: str) -> Settings:
    """The session's settings, and the types of the user variables that the statement may read."""
    if not session.user_variables or "@" not in sql:
        return session.settings
    text = sql.lower()
    read = {name: value for name, value in session.user_variables.items() if name in text}
    return replace(session.settings, variables=tuple([(name, code_of(value)) for name, value in read.items()]))


def plain_value(session: Session, typed: Typed) -> Value:
    """What a user variable becomes: dates and times are text in it."""
    value, type_ = typed
    return value_text(type_, value, session.time_zone) if value is not None and type_.kind in TEMPORALS else value


async def evaluate(session: Session, expression: str) -> Value:
    return (await evaluate_typed(session, expression))[0]


async def evaluate_typed(session: Session, expression: str) -> Typed:
    result = await run_select(session, f"SELECT {expression} LIMIT 1")  # whatever sql_select_limit is
    return (result.rows[0][0] if result.rows else None), result.columns[0].type


async def evaluate_list(session: Session, expressions: str) -> Row:
    result = await run_select(session, f"SELECT {expressions} LIMIT 1")
    return result.rows[0] if result.rows else (None,) * len(result.columns)
