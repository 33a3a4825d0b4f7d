"""Session facts: functions and variables whose value the session knows, not the row.

Each becomes a parameter after the statement's own, named in `Plan.facts`; whoever runs the
plan gives its value. The clock stands still within a statement, as in MySQL.

| fact                          | value                                                     |
|-------------------------------|-----------------------------------------------------------|
| now:N, utc_now:N, sysdate:N   | packed DATETIME with N digits, in the session's zone or UTC|
| today, utc_today              | packed DATE                                               |
| time:N, utc_time:N            | TIME, microseconds                                        |
| unix_timestamp                | int                                                       |
| user, current_user, database, version, charset… | str, or None                            |
| connection_id, last_insert_id, found_rows, row_count | int                                |
| user_variable:NAME            | a value of the class that `Settings.variables` says, or None |
| user_variables                | `UserVariables`, for statements that assign to some, or have a RAND(seed) |
| waiting_calls                 | `WaitingCalls`, for statements with a function that waits |
| system_variable:SCOPE.NAME    | a value of the type in `controller.system_variables`; SCOPE is session or global |
"""

from __future__ import annotations

from controller import system_variables
from controller.sql.expressions import chance as chance  # so that its functions are known
from controller.sql.settings import Settings
from controller.sql.text.parameter_types import type_of
from dataflow.errors import Condition, InvalidStatement
from dataflow.functions import is_function, lookup
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DATE, Kind, SqlType, text

SECOND_DIGITS_MAX = 6
_CLOCKS = {
    "now": ("now", Kind.DATETIME),
    "current_timestamp": ("now", Kind.DATETIME),
    "localtime": ("now", Kind.DATETIME),
    "localtimestamp": ("now", Kind.DATETIME),
    "sysdate": ("sysdate", Kind.DATETIME),
    "utc_timestamp": ("utc_now", Kind.DATETIME),
    "curtime": ("time", Kind.TIME),
    "current_time": ("time", Kind.TIME),
    "utc_time": ("utc_time", Kind.TIME),
}
TODAY = ("today", DATE)
SYSTEM_COLLATION = "utf8mb3_general_ci"
_PLAIN = {
    "curdate": TODAY,
    "current_date": TODAY,
    "utc_date": ("utc_today", DATE),
    "unix_timestamp": ("unix_timestamp", BIGINT),
    "user": ("user", text(288, SYSTEM_COLLATION)),
    "session_user": ("user", text(288, SYSTEM_COLLATION)),
    "system_user": ("user", text(288, SYSTEM_COLLATION)),
    "current_user": ("current_user", text(288, SYSTEM_COLLATION)),
    "current_role": ("current_role", text(288, SYSTEM_COLLATION)),
    "database": ("database", text(64, SYSTEM_COLLATION)),
    "schema": ("database", text(64, SYSTEM_COLLATION)),
    "version": ("version", text(60, SYSTEM_COLLATION)),
    "connection_id": ("connection_id", BIGINT_UNSIGNED),
    "last_insert_id": ("last_insert_id", BIGINT_UNSIGNED),
    "found_rows": ("found_rows", BIGINT),
    "row_count": ("row_count", BIGINT),
}
WITHOUT_PARENTHESES = frozenset(
    {
        "current_timestamp",
        "current_date",
        "current_time",
        "current_user",
        "localtime",
        "localtimestamp",
        "utc_date",
        "utc_time",
        "utc_timestamp",
    }
)

def fact_of(function: str, digits: int | None, argument_count: int) -> tuple[str, SqlType] | None:
    """The fact that a call of `function` stands for; `digits` is a literal argument."""
    if function in _CLOCKS and (argument_count == 0 or digits is not None):
        name, kind = _CLOCKS[function]
        if digits is not None and digits > SECOND_DIGITS_MAX:
            raise InvalidStatement(Condition.PRECISION_TOO_BIG, digits, function, SECOND_DIGITS_MAX)
        return f"{name}:{digits or 0}", SqlType(kind, scale=digits or 0)
    if function in _PLAIN and argument_count == 0 and not is_function_of_none(function):
        return _PLAIN[function]
    return None


def is_function_of_none(name: str) -> bool:
    """Whether a function may be called without arguments; then it is no fact."""
    return is_function(name) and lookup(name).least == 0


def user_variable(name: str, settings: Settings) -> tuple[str, SqlType]:
    code = dict(settings.variables).get(name.lower(), "n")
    return f"user_variable:{name.lower()}", text() if code == "n" else type_of(code, settings.collation)


def system_variable(scope: str, name: str) -> tuple[str, SqlType]:
    scope = "global" if scope.lower() == "global" else "session"
    lowered = name.lower()
    return f"system_variable:{scope}.{lowered}", system_variables.type_of(lowered)
