"""The facts of a session that statements ask for; see `controller.sql.expressions.facts` for the names.

The clock stands still within a statement: every fact of it sees the time it started.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from controller.accounts import shown_names
from controller.system_variables import type_of
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.user_variables import UserVariables
from dataflow.values import temporal
from dataflow.values.types import INTEGERS, Kind, Value
from mysql_adapter.sessions import variables
from mysql_adapter.sessions.variables import VERSION

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_UNITS = tuple(10 ** (6 - digits) for digits in range(7))


def fact(session: Session, name: str) -> Value:
    kind, _, rest = name.partition(":")
    return _FACTS[kind](session, rest)


def packed_time(seconds: float, time_zone: str, digits: int = 6) -> int:
    """A moment as packed DATETIME in `time_zone`, cut to `digits` fractional digits."""
    zone = temporal.zone(time_zone) or UTC
    moment = datetime.fromtimestamp(seconds, zone)
    unit = _UNITS[digits]
    return temporal.from_datetime(moment.replace(microsecond=moment.microsecond // unit * unit, tzinfo=None))


def fixed_seconds(session: Session) -> float:
    """What SET timestamp has said; 0 if nothing."""
    fixed = session.variables.get("timestamp")
    return float(fixed) if isinstance(fixed, int | Decimal) else 0.0


def _seconds(session: Session) -> float:
    """When the statement started, or what SET timestamp says."""
    return fixed_seconds(session) or session.statement_started


def _now(session: Session, digits: str) -> int:
    return packed_time(_seconds(session), session.time_zone, int(digits or 0))


def _utc_now(session: Session, digits: str) -> int:
    return packed_time(_seconds(session), "UTC", int(digits or 0))


def _sysdate(session: Session, digits: str) -> int:
    return packed_time(time.time(), session.time_zone, int(digits or 0))


def _system_variable(session: Session, path: str) -> Value:
    scope, _, name = path.partition(".")
    variable = variables.find(name)
    if scope == "global" and variable.scope == "session":
        raise InvalidStatement(Condition.READ_ONLY_VARIABLE, name, "SESSION")
    session.refresh_volatile_variables()
    source = session.environment.globals if scope == "global" else session.variables
    value = source.get(name)
    kind = type_of(name).kind
    if kind is Kind.DECIMAL:
        return Decimal(str(value or 0))
    if kind in INTEGERS:
        return int(value) if isinstance(value, int | float | str) and str(value) else 0
    return None if value is None else str(value)


def _user_variable(session: Session, name: str) -> Value:
    return session.user_variables.get(name)


def _waiting_calls(session: Session, _: str) -> Value:
    return session.waiting_calls  # type: ignore[return-value]


def _user_variables(session: Session, _: str) -> Value:
    return UserVariables(session.user_variables)  # type: ignore[return-value]


def _user(session: Session, _: str) -> str:
    return f"{session.user}@{session.connection.host_name}"


def _current_user(session: Session, _: str) -> str:
    return f"{session.account.user}@{session.account.host}"


def _current_role(session: Session, _: str) -> str:
    return shown_names(session.roles) or "NONE"


def _today(session: Session, _: str) -> int:
    return temporal.date_part(_now(session, "0"))


def _utc_today(session: Session, _: str) -> int:
    return temporal.date_part(_utc_now(session, "0"))


def _time(session: Session, digits: str) -> int:
    return temporal.time_part(_now(session, digits))


def _utc_time(session: Session, digits: str) -> int:
    return temporal.time_part(_utc_now(session, digits))


def _unix_timestamp(session: Session, _: str) -> int:
    return int(_seconds(session))


def _database(session: Session, _: str) -> str | None:
    return session.database


def _version(session: Session, _: str) -> str:
    return VERSION


def _charset(session: Session, _: str) -> str:
    return str(session.variables.get("character_set_connection"))


def _connection_id(session: Session, _: str) -> int:
    return session.connection.id


def _last_insert_id(session: Session, _: str) -> int:
    return session.last_insert_id


def _found_rows(session: Session, _: str) -> int:
    return session.found_rows


def _row_count(session: Session, _: str) -> int:
    return session.row_count


_FACTS: dict[str, Callable[[Session, str], Value]] = {
    "now": _now,
    "utc_now": _utc_now,
    "sysdate": _sysdate,
    "today": _today,
    "utc_today": _utc_today,
    "time": _time,
    "utc_time": _utc_time,
    "unix_timestamp": _unix_timestamp,
    "user": _user,
    "current_user": _current_user,
    "current_role": _current_role,
    "database": _database,
    "version": _version,
    "charset": _charset,
    "connection_id": _connection_id,
    "last_insert_id": _last_insert_id,
    "found_rows": _found_rows,
    "row_count": _row_count,
    "user_variable": _user_variable,
    "user_variables": _user_variables,
    "waiting_calls": _waiting_calls,
    "system_variable": _system_variable,
}
