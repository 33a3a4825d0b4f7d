"""SELECT and DO of functions that wait or lock: SLEEP, GET_LOCK and its family.

They cannot be expressions, which neither wait nor have effects. Clients call them on their own,
`SELECT GET_LOCK('x', 10)`, and that is what is understood here: a list of such calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from backend.execution.outcome import Done, Outcome, ResultSet
from controller.sql.plan import OutputColumn
from dataflow.errors import Condition, InvalidStatement
from dataflow.types import BIGINT, Value
from mysql_adapter.planned import evaluate_list
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.session import Session

NAME_LENGTH_MAX = 64


async def waiting_statement(session: Session, cursor: TokenCursor) -> Outcome | None:
    """The outcome, or None if the statement is not such a list."""
    verb = cursor.accept_any("SELECT", "DO")
    columns: list[OutputColumn] = []
    calls: list[tuple[str, str]] = []
    while verb:
        token = cursor.next()
        if token.upper not in _FUNCTIONS:
            return None
        if not cursor.accept("("):
            return None
        arguments = "" if cursor.at(")") else cursor.expression(")")
        end = cursor.token
        if not cursor.accept(")"):
            return None
        calls.append((token.upper, arguments))
        name = cursor.sql[token.start : end.end]
        if cursor.accept("AS") or cursor.at_identifier():
            name = cursor.word_or_string()
        columns.append(OutputColumn(name, BIGINT))
        if not cursor.accept(","):
            break
    if not cursor.at_end or not calls:
        return None
    row: list[Value] = []
    for function, arguments in calls:
        values = await evaluate_list(session, arguments) if arguments else ()
        least, most, call = _FUNCTIONS[function]
        if not least <= len(values) <= most:
            raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, function)
        row.append(await call(session, values))
    return ResultSet(tuple(columns), [tuple(row)]) if verb == "SELECT" else Done()


def is_waiting_function(name: str) -> bool:
    return name.upper().rpartition(".")[2] in _FUNCTIONS


def _name(value: Value) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH_MAX:
        raise InvalidStatement(Condition.WRONG_LOCK_NAME, "NULL" if value is None else value)
    return value


async def _sleep(session: Session, values: tuple[Value, ...]) -> Value:
    seconds = values[0]
    if seconds is None or isinstance(seconds, str | bytes) or seconds < 0:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "sleep.")
    await asyncio.sleep(float(seconds))
    return 0


async def _get_lock(session: Session, values: tuple[Value, ...]) -> Value:
    timeout = values[1]
    if timeout is None or isinstance(timeout, str | bytes):
        return None
    return int(await session.environment.services.acquire(_name(values[0]), session.connection.id, float(timeout)))


async def _release_lock(session: Session, values: tuple[Value, ...]) -> Value:
    released = await session.environment.services.release(_name(values[0]), session.connection.id)
    return None if released is None else int(released)


async def _release_all_locks(session: Session, values: tuple[Value, ...]) -> Value:
    return await session.environment.services.release_all(session.connection.id)


async def _is_free_lock(session: Session, values: tuple[Value, ...]) -> Value:
    return int(await session.environment.services.owner(_name(values[0])) is None)


async def _is_used_lock(session: Session, values: tuple[Value, ...]) -> Value:
    return await session.environment.services.owner(_name(values[0]))


_FUNCTIONS: dict[str, tuple[int, int, Callable[[Session, tuple[Value, ...]], Awaitable[Value]]]] = {
    "SLEEP": (1, 1, _sleep),
    "GET_LOCK": (2, 2, _get_lock),
    "RELEASE_LOCK": (1, 1, _release_lock),
    "RELEASE_ALL_LOCKS": (0, 0, _release_all_locks),
    "IS_FREE_LOCK": (1, 1, _is_free_lock),
    "IS_USED_LOCK": (1, 1, _is_used_lock),
}
