"""TIMESTAMPs in expressions of a session whose time zone is not UTC, and TIMEs among dates.

A TIMESTAMP column holds UTC, and is handed out as such when it stands alone: whoever shows it
converts it. Inside an expression it is a DATETIME of the session's zone, `from_utc(column)`. A
comparison with a constant is turned around, `column = to_utc(constant)`, so that an index on
the column still serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.sql.settings import Settings
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of, walk
from dataflow.functions import call, is_volatile
from dataflow.functions.ciphers import in_mode
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


def without_zeros(moment: Expression, source: Expression, settings: Settings) -> Expression:
    """A date read from a text or a number, as the modes about zeros in dates allow it. Columns of dates have been checked when they were stored."""
    modes = settings.sql_mode & {"NO_ZERO_DATE", "NO_ZERO_IN_DATE"}
    if not modes or source.type.kind in DATES or source.type.kind in (Kind.TIME, Kind.NULL):
        return moment
    names = ",".join(sorted(modes))
    return call("without zeros", moment, Literal(names, text(len(names))))


NAMING = frozenset({"date_format", "dayname", "monthname"})
"""Functions that give names of months and days in the language of lc_time_names."""


def called(name: str, arguments: Sequence[Expression], settings: Settings) -> Expression:
    """A call of a function as the session means it: the two that count seconds since 1970 are UTC's."""
    zone = settings.time_zone
    if name == "str_to_date":
        arguments = [arguments[0], _constant(arguments[1])]
        zeros = "" if "NO_ZERO_DATE" in settings.sql_mode else "zero dates" if "NO_ZERO_IN_DATE" in settings.sql_mode else "zeros"
        return call(f"{name} with {zeros}" if zeros else name, *arguments)
    if name in ("date", "timestamp") and len(arguments) == 1:
        return without_zeros(call(name, *arguments), arguments[0], settings)
    if name == "unix_timestamp" and arguments:
        return call(name, in_utc(arguments[0], zone))
    if name in NAMING and planned().locale != ENGLISH:
        return call(f"{name} in", *arguments, Literal(planned().locale, text(len(planned().locale))))
    if name in ("aes_encrypt", "aes_decrypt") and 2 <= len(arguments) <= 3:
        return in_mode(name, arguments, planned().encryption_mode)
    if name == "week" and len(arguments) == 1 and planned().week_format:
        return call(name, arguments[0], Literal(planned().week_format, INT))
    if name == "from_unixtime" and not is_utc(zone):
        moment = call("from_utc", call(name, arguments[0]), _name(zone))
        return called("date_format", [moment, arguments[1]], settings) if len(arguments) > 1 else moment
    return call(name, *arguments)


def _constant(expression: Expression) -> Expression:
    """A text that is computed of literals alone, as a literal."""
    if isinstance(expression, Literal) or is_volatile(expression):
        return expression
    if not all(isinstance(each, Call | Literal) for each in walk(expression)):
        return expression
    value = compile_scalar(expression)((), ())
    return Literal(value, expression.type) if isinstance(value, str) else expression


def _is_column(expression: Call) -> bool:
    return isinstance(expression.arguments[0], Column)


def _name(zone: str) -> Expression:
    return Literal(zone, text(len(zone)))
