"""Questions and answers between the adapters of one cluster.

PROCESSLIST, GLOBAL STATUS, KILL and SET GLOBAL reach all of them, and what one has defined all know before it is acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from backend.network.tls import BadCertificate
from backend.processes.statement_counts import SLOW, STATEMENTS, TOTALS
from controller.system_variables import VARIABLES, Shape
from dataflow.errors import Condition, InvalidStatement, MillraceError
from dataflow.values.types import Row, Value
from mysql_adapter.sessions.counts import LONGEST, process_counts

if TYPE_CHECKING:
    from mysql_adapter.environment import Environment
    from mysql_adapter.sessions.session import Session

TELL_TIMEOUT_S = 5.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


async def answer(environment: Environment, question: bytes) -> bytes:
    """Answer what another adapter asks."""
    kind, *arguments = _decode(question)
    if kind == "learn":
        await _learn(environment, *arguments)
        return _encode(None)
    return _encode(_ANSWERS[kind](environment, *arguments))


async def _learn(environment: Environment, version: int) -> None:
    """There is a catalog of this version."""
    if environment.database.catalog.version < version:
        await environment.database.refresh_catalog()


def _processes(environment: Environment) -> list[Any]:
    return process_rows(environment)


def _counts(environment: Environment) -> dict[str, int]:
    return dict(process_counts(environment))


def _kill(environment: Environment, number: int, query_only: bool, user: str | None) -> str:
    """`user` is the only one whose connections may be killed, None for anyone's."""
    target = environment.connections.get(number)
    if target is None:
        return "unknown"
    if user is not None and (target.account is None or target.account.user != user):
        return "denied"
    if query_only:
        target.kill_query()
    else:
        target.kill()
    return "done"


def _set_global(environment: Environment, name: str, value: Value) -> None:
    is_number = VARIABLES[name].shape is Shape.NUMBER
    environment.set_global(name, Decimal(value) if is_number and isinstance(value, str) else value)


def _reload_tls(environment: Environment) -> str:
    """Why the certificate that is there now cannot be used, in words."""
    try:
        if environment.certificate is not None:
            environment.certificate.reload()
    except BadCertificate as error:
        return str(error)
    return ""


def _flush_hosts(environment: Environment) -> None:
    environment.admission.forget_hosts()


_ANSWERS: dict[str, Any] = {
    "flush_hosts": _flush_hosts,
    "processes": _processes,
    "counts": _counts,
    "kill": _kill,
    "set_global": _set_global,
    STATEMENTS: lambda environment: environment.statements.statements(environment.database),
    TOTALS: lambda environment: environment.statements.totals(),
    SLOW: lambda environment: list(environment.statements.slow),
    "reload_tls": _reload_tls,
}


# --- asking


def process_rows(environment: Environment) -> list[Row]:
    """(id, user, host, database, command, seconds, state, statement) of the connections here."""
    from mysql_adapter.information_schema.server import process_row

    return [process_row(number, each) for number, each in sorted(environment.connections.items())]


async def all_processes(session: Session) -> list[Row]:
    """Those of all adapters that the session may see."""
    environment = session.environment
    rows = process_rows(environment)
    for other in await environment.services.ask_others(_encode(("processes",))):
        rows += [tuple(row) for row in _decode(other)]
    if not session.rights.has_any("PROCESS"):
        rows = [row for row in rows if row[1] == session.user]
    return sorted(rows, key=lambda row: int(str(row[0])))


async def all_counts(environment: Environment) -> Counter[str]:
    """What the clients of all adapters have done."""
    total = process_counts(environment)
    for other in await environment.services.ask_others(_encode(("counts",))):
        found = Counter(_decode(other))
        longest = max(total[LONGEST], found[LONGEST])
        total.update(found)
        total[LONGEST] = longest
    return total


async def tell_catalog(environment: Environment) -> None:
    """Definitions, or accounts, have changed here: until all adapters know that, nobody is told that they have.

    Who does not answer in time hears of it from ZooKeeper.
    """
    question = _encode(("learn", environment.database.catalog.version))
    with contextlib.suppress(MillraceError, TimeoutError):
        async with asyncio.timeout(TELL_TIMEOUT_S):
            await environment.services.ask_others(question)


async def kill(session: Session, number: int, query_only: bool) -> None:
    user = None if session.rights.has_any("SUPER", "CONNECTION_ADMIN") else session.account.user
    environment = session.environment
    outcomes = {_kill(environment, number, query_only, user)}
    if outcomes == {"unknown"}:
        question = _encode(("kill", number, query_only, user))
        outcomes |= {_decode(each) for each in await environment.services.ask_others(question)}
    if "denied" in outcomes:
        raise InvalidStatement(Condition.NOT_THREAD_OWNER, number)
    if "done" not in outcomes:
        raise InvalidStatement(Condition.UNKNOWN_THREAD, number)


async def reload_tls(session: Session) -> str:
    """All adapters use the certificate that is there now; why one cannot, in words."""
    failure = _reload_tls(session.environment)
    return failure or next(filter(None, map(_decode, await session.environment.services.ask_others(_encode(("reload_tls",))))), "")


async def flush_hosts(session: Session) -> None:
    """No host is blocked by any adapter."""
    _flush_hosts(session.environment)
    await session.environment.services.ask_others(_encode(("flush_hosts",)))


async def set_global(session: Session, name: str, value: Value) -> None:
    """`value` has been checked."""
    session.environment.set_global(name, value)
    sent = value if value is None or isinstance(value, int | str) else str(value)
    await session.environment.services.ask_others(_encode(("set_global", name, sent)))
