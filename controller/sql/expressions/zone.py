"""TIMESTAMPs in expressions of a session whose time zone is not UTC, and TIMEs among dates.

A TIMESTAMP column holds UTC, and is handed out as such when it stands alone: whoever shows it
converts it. Inside an expression it is a DATETIME of the session's zone, `from_utc(column)`. A
comparison with a constant is turned around, `column = to_utc(constant)`, so that an index on
the column still serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.sql.settings import Settings
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of
from dataflow.functions import call
from dataflow.values.result_limits import planned
from dataflow.values.temporal.locales import ENGLISH
from dataflow.values.types import DATES, INT, STRINGS, TEMPORALS, Kind, text

_UTC = frozenset({"UTC", "+00:00", "-00:00", "SYSTEM"})
_COMPARABLE = (STRINGS | TEMPORALS) - {Kind.TIME}


def is_utc(zone: str) -> bool:
    return zone.upper() in _UTC


def localised(expression: Expression, zone: str) -> Expression:
    """A TIMESTAMP as an expression around it sees it; anything else as it is."""
    if expression.type.kind is not Kind.TIMESTAMP or is_utc(zone):
        return expression
    return call("from_utc", expression, _name(zone))


def in_utc(expression: Expression, zone: str) -> Expression:
    """A moment of the session's zone as a TIMESTAMP."""
    if isinstance(expression, Call) and expression.function == "from_utc":
        return expression.arguments[0]
    if expression.type.kind is Kind.TIMESTAMP or is_utc(zone):
        return expression
    return call("to_utc", expression, _name(zone))


def aligned(operands: Sequence[Expression], zone: str) -> list[Expression]:
    """The operands of a comparison, all in UTC where one is a column that holds UTC and the others allow it."""
    columns = [isinstance(each, Call) and each.function == "from_utc" and _is_column(each) for each in operands]
    if is_utc(zone) or not any(columns):
        return list(operands)
    others = [each for each, is_column in zip(operands, columns) if not is_column]
    if any(columns_of(each) or each.type.kind not in _COMPARABLE for each in others):
        return list(operands)
    return [in_utc(each, zone) for each in operands]


def dated(operands: Sequence[Expression], today: Callable[[], Expression]) -> list[Expression]:
    """The operands, each TIME among dates as that time of the current day."""
    kinds = {each.type.kind for each in operands}
    if Kind.TIME not in kinds or not kinds & DATES:
        return list(operands)
    return [call("on date", each, today()) if each.type.kind is Kind.TIME else each for each in operands]


NAMING = frozenset({"date_format", "dayname", "monthname"})
"""Functions that give names of months and days in the language of lc_time_names."""


def called(name: str, arguments: Sequence[Expression], settings: Settings) -> Expression:
    """A call of a function as the session means it: the two that count seconds since 1970 are UTC's."""
    zone = settings.time_zone
    if name == "str_to_date" and not settings.sql_mode & {"NO_ZERO_DATE", "NO_ZERO_IN_DATE"}:
        return call("str_to_date with zeros", *arguments)
    if name == "unix_timestamp" and arguments:
        return call(name, in_utc(arguments[0], zone))
    if name in NAMING and planned().locale != ENGLISH:
        return call(f"{name} in", *arguments, Literal(planned().locale, text(len(planned().locale))))
    if name == "week" and len(arguments) == 1 and planned().week_format:
        return call(name, arguments[0], Literal(planned().week_format, INT))
    if name == "from_unixtime" and not is_utc(zone):
        moment = call("from_utc", call(name, arguments[0]), _name(zone))
        return called("date_format", [moment, arguments[1]], settings) if len(arguments) > 1 else moment
    return call(name, *arguments)


def _is_column(expression: Call) -> bool:
    return isinstance(expression.arguments[0], Column)


def _name(zone: str) -> Expression:
    return Literal(zone, text(len(zone)))
