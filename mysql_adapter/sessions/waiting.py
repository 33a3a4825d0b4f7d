"""The calls of SLEEP, GET_LOCK and its family that a statement needs answered (see `dataflow.functions.waiting`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dataflow.errors import Condition, InvalidStatement
from dataflow.functions.waiting import Needed
from dataflow.values.types import Value

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

NAME_LENGTH_MAX = 64


async def answer(session: Session, needed: Needed) -> Value:
    return await _CALLS[needed.name](session, needed.values)


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


_CALLS: dict[str, Callable[[Session, tuple[Value, ...]], Awaitable[Value]]] = {
    "sleep": _sleep,
    "get_lock": _get_lock,
    "release_lock": _release_lock,
    "release_all_locks": _release_all_locks,
    "is_free_lock": _is_free_lock,
    "is_used_lock": _is_used_lock,
}
