"""Intervals: reading their amounts, adding them to dates, counting them between dates.

`x + INTERVAL n unit`, DATE_ADD and ADDDATE are the call `date_add(x, n, unit)`, with the
unit's name as a literal; minus, DATE_SUB and SUBDATE are `date_sub`. TIMESTAMPADD and
TIMESTAMPDIFF keep their order: the unit comes first. An amount is a number of months and one
of microseconds, of which one is zero. Leaving the calendar (year 9999, or 1 when days are counted) gives NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.expressions.notices import say
from dataflow.functions.date_parts import datetime_type, fraction_digits, seconds_digits, time_type, unit_name
from dataflow.functions.numeric import Number
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values.numerals import SHOWN_MAX
from dataflow.values.result_limits import planned
from dataflow.values.temporal import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    TIME_MAX,
    Flaw,
    date_part,
    days_in_month,
    format_date,
    format_datetime,
    format_time,
    from_microseconds,
    pack,
    read_datetime,
    read_decimal,
    read_number,
    read_time,
    to_microseconds,
    unpack,
)
from dataflow.values.types import BIGINT, DATE, DATES, INT, NUMBERS, STRINGS, Kind, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Arguments = tuple[Expression, ...]

MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
MICROSECONDS = {"WEEK": 7 * DAY, "DAY": DAY, "HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND, "MICROSECOND": 1}
_COMPOSITES = {
    "YEAR_MONTH": ("YEAR", "MONTH"),
    "DAY_HOUR": ("DAY", "HOUR"),
    "DAY_MINUTE": ("DAY", "HOUR", "MINUTE"),
    "DAY_SECOND": ("DAY", "HOUR", "MINUTE", "SECOND"),
    "DAY_MICROSECOND": ("DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND"),
    "HOUR_MINUTE": ("HOUR", "MINUTE"),
    "HOUR_SECOND": ("HOUR", "MINUTE", "SECOND"),
    "HOUR_MICROSECOND": ("HOUR", "MINUTE", "SECOND", "MICROSECOND"),
    "MINUTE_SECOND": ("MINUTE", "SECOND"),
    "MINUTE_MICROSECOND": ("MINUTE", "SECOND", "MICROSECOND"),
    "SECOND_MICROSECOND": ("SECOND", "MICROSECOND"),
}
UNITS = frozenset(MONTHS) | frozenset(MICROSECONDS) | frozenset(_COMPOSITES)
DATE_UNITS = frozenset(("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "YEAR_MONTH"))
"""A DATE stays a DATE when one of these is added."""

_DATE_ONLY = re.compile(r"\s*(?:\d+[^\w\s]+\d+[^\w\s]+\d+|\d{8}|\d{6})\s*\Z")


def _text_type() -> SqlType:
    """A moment as text, in the connection's collation."""
    return text(29, planned().collation)


@dataclass(frozen=True, slots=True)
class Interval:
    months: int
    microseconds: int


def read_composite(amount: str, units: tuple[str, ...]) -> Interval | None:
    """'1 2:03:04' and the like: any separators, and missing parts are missing on the left."""
    numbers = re.findall(r"\d+", amount, re.ASCII)
    if len(numbers) > len(units):
        return None
    if units[-1] == "MICROSECOND" and numbers:
        numbers[-1] = numbers[-1].ljust(6, "0")
    sign = -1 if amount.lstrip().startswith("-") else 1
    months = microseconds = 0
    for unit, number in zip(reversed(units), reversed(numbers)):
        if unit in MONTHS:
            months += int(number) * MONTHS[unit]
        else:
            microseconds += int(number) * MICROSECONDS[unit]
    return Interval(sign * months, sign * microseconds)


def read_seconds(amount: Decimal) -> Interval:
    return Interval(0, int(amount.scaleb(6).to_integral_value(ROUND_HALF_UP)))


def add_interval(moment: int, interval: Interval) -> int | None:
    year, month, day = unpack(moment)[:3]
    if not month or not day:
        say(Condition.INCORRECT_MOMENT, "datetime", format_date(moment) if moment == date_part(moment) else format_datetime(moment, 0))
        return None
    if interval.microseconds:
        found = from_microseconds(to_microseconds(moment) + interval.microseconds)
        if found is None:
            say(Condition.DATETIME_OVERFLOW, "datetime")
        return found
    period = year * 12 + month - 1 + interval.months
    if not 0 <= period < 120_000:
        say(Condition.DATETIME_OVERFLOW, "datetime")
        return None
    year, month = period // 12, period % 12 + 1
    return moment - date_part(moment) + pack(year, month, min(day, days_in_month(year, month)))


def add_to_text(value: str, interval: Interval, date_unit: bool) -> str | None:
    """Text that is a date alone stays one if it can."""
    moment, flaw = read_datetime(value)
    _say_cut("datetime", moment, flaw, value)
    return _written_sum(moment, interval, date_unit and _DATE_ONLY.match(value) is not None)


def add_to_number(value: Number, interval: Interval, date_unit: bool) -> str | None:
    """20200102 is a date, 20200102030405 a date and time."""
    moment = read_number(value)[0] if isinstance(value, int) else read_decimal(value)[0]
    return _written_sum(moment, interval, date_unit and value <= 99_991_231)


def _written_sum(moment: int | None, interval: Interval, as_date: bool) -> str | None:
    result = add_interval(moment, interval) if moment is not None else None
    if result is None:
        return None
    return format_date(result) if as_date else format_datetime(result, 6 if result % (1 << 24) else 0)


def add_to_time(value: int, interval: Interval) -> int | None:
    result = value + interval.microseconds
    if abs(result) <= TIME_MAX:
        return result
    say(Condition.DATETIME_OVERFLOW, "time")
    return None


def _checked_unit(expression: Expression) -> str:
    unit = unit_name(expression)
    if unit not in UNITS:
        raise InvalidStatement(Condition.PARSE_ERROR, unit, 1)
    return unit


def _amount(expression: Expression, unit: str) -> tuple[Domain, Callable[..., Interval | None]]:
    """The domain in which an amount of `unit` is read, and the reader."""
    if unit in _COMPOSITES:
        units = _COMPOSITES[unit]
        return Domain.TEXT, lambda amount: read_composite(amount, units)
    if unit == "SECOND":
        return Domain.DECIMAL, read_seconds
    if unit in MONTHS:
        return Domain.INTEGER, lambda amount: Interval(amount * MONTHS[unit], 0)
    return Domain.INTEGER, lambda amount: Interval(0, amount * MICROSECONDS[unit])


def _unit_digits(unit: str, amount: Expression) -> int:
    if unit.endswith("MICROSECOND"):
        return 6
    return seconds_digits(amount) if unit == "SECOND" else 0


def _sum_type(date: Expression, amount: Expression, unit: str) -> SqlType:
    digits = max(fraction_digits(date), _unit_digits(unit, amount))
    match date.type.kind:
        case Kind.DATE:
            return DATE if unit in DATE_UNITS else datetime_type(digits)
        case Kind.DATETIME | Kind.TIMESTAMP:
            return datetime_type(digits)
        case Kind.TIME if unit not in MONTHS and unit != "YEAR_MONTH":
            return time_type(digits)
        case _:
            return _text_type()


def _emit_sum(emitter: Emitter, date: Expression, amount: Expression, unit: str, sign: int) -> Fragment:
    domain, read = _amount(amount, unit)
    date_unit = unit in DATE_UNITS
    add: Callable[..., Any]
    if date.type.kind in DATES:
        date_domain, add = Domain.DATETIME, add_interval
    elif _sum_type(date, amount, unit).kind is Kind.TIME:
        date_domain, add = Domain.TIME, add_to_time
    elif date.type.kind in NUMBERS:
        date_domain, add = Domain.NUMBER, lambda value, interval: add_to_number(value, interval, date_unit)
    else:
        date_domain, add = Domain.TEXT, lambda value, interval: add_to_text(value, interval, date_unit)

    def apply(value: Any, number: Any) -> int | str | None:
        interval = read(number)
        if interval is None:
            return None
        return add(value, Interval(sign * interval.months, sign * interval.microseconds))

    return emitter.apply(apply, [emitter.convert(date, date_domain), emitter.convert(amount, domain)], nulls=False)


_DAY = Literal("DAY", text(3))


def _date_add_type(arguments: Arguments) -> SqlType:
    unit = _checked_unit(arguments[2] if len(arguments) > 2 else _DAY)
    return _sum_type(arguments[0], arguments[1], unit)


def _date_add(sign: int) -> Callable[[Emitter, Call], Fragment]:
    def emit(emitter: Emitter, node: Call) -> Fragment:
        date, amount, unit = (*node.arguments, _DAY)[:3]
        return _emit_sum(emitter, date, amount, unit_name(unit), sign)

    return emit


special("date_add", least=3, most=3, result=_date_add_type)(_date_add(1))
special("date_sub", least=3, most=3, result=_date_add_type)(_date_add(-1))
special("adddate", least=2, most=3, result=_date_add_type)(_date_add(1))
special("subdate", least=2, most=3, result=_date_add_type)(_date_add(-1))


@special(
    "timestampadd", least=3, most=3,
    result=lambda arguments: _sum_type(arguments[2], arguments[1], _checked_unit(arguments[0])),
)  # fmt: skip
def timestampadd(emitter: Emitter, node: Call) -> Fragment:
    unit, amount, date = node.arguments
    return _emit_sum(emitter, date, amount, unit_name(unit), 1)


def _whole_months(start: int, end: int) -> int:
    """Complete months from the earlier `start` to `end`."""
    first, last = unpack(start), unpack(end)
    months = (last[0] - first[0]) * 12 + last[1] - first[1]
    return months - (last[2:] < first[2:])


def count_units(unit: str, start: int, end: int) -> int | None:
    if not all(unpack(start)[1:3]) or not all(unpack(end)[1:3]):
        return None
    sign = 1 if start <= end else -1
    if unit in MONTHS:
        return sign * (_whole_months(min(start, end), max(start, end)) // MONTHS[unit])
    return sign * (abs(to_microseconds(end) - to_microseconds(start)) // MICROSECONDS[unit])


@special("timestampdiff", least=3, most=3, result=BIGINT)
def timestampdiff(emitter: Emitter, node: Call) -> Fragment:
    unit = _checked_unit(node.arguments[0])
    moments = [emitter.convert(argument, Domain.DATETIME) for argument in node.arguments[1:]]
    return emitter.apply(lambda start, end: count_units(unit, start, end), moments, nulls=False)


@function("datediff", arguments=(Domain.DATETIME, Domain.DATETIME), result=INT)
def datediff(end: int, start: int) -> int | None:
    return count_units("DAY", date_part(start), date_part(end))


# ADDTIME, SUBTIME, TIMEDIFF: text may hold a time, or a date and time.


def _read_either(value: str) -> tuple[bool, int | None]:
    """Whether text holds a date and time, and the value."""
    if len(value.strip()) >= 12:
        moment, flaw = read_datetime(value)
        if moment is not None:
            _say_cut("datetime", moment, flaw, value)
            return True, moment
    time, flaw = read_time(value)
    _say_cut("time", time, flaw, value)
    return False, time


def _say_cut(kind: str, found: int | None, flaw: Flaw, value: str) -> None:
    if found is None:
        say(Condition.INCORRECT_MOMENT, kind, value[:SHOWN_MAX])
    elif flaw:
        say(Condition.TRUNCATED_VALUE, kind, value[:SHOWN_MAX])


def _time_alone(value: str) -> int | None:
    is_moment, read = _read_either(value)
    return None if is_moment else read


def _clipped(value: int) -> int:
    return max(-TIME_MAX, min(TIME_MAX, value))


def _add_time_to_text(value: str, change: int) -> str | None:
    is_moment, read = _read_either(value)
    if read is None:
        return None
    if is_moment:
        moment = from_microseconds(to_microseconds(read) + change)
        return None if moment is None else format_datetime(moment, 6 if moment % (1 << 24) else 0)
    total = _clipped(read + change)
    return format_time(total, 6 if total % SECOND else 0)


def _add_time_type(arguments: Arguments) -> SqlType:
    digits = max(map(fraction_digits, arguments))
    if arguments[0].type.kind in DATES:
        return datetime_type(digits)
    return time_type(digits) if arguments[0].type.kind is Kind.TIME else _text_type()


def _add_time(sign: int) -> Callable[[Emitter, Call], Fragment]:
    def emit(emitter: Emitter, node: Call) -> Fragment:
        add: Callable[..., int | str | None]
        if node.type.kind is Kind.DATETIME:
            domain = Domain.DATETIME
            add = lambda moment, change: from_microseconds(to_microseconds(moment) + sign * change)  # noqa: E731
        elif node.type.kind is Kind.TIME:
            domain = Domain.TIME
            add = lambda value, change: _clipped(value + sign * change)  # noqa: E731
        else:
            domain = Domain.TEXT
            add = lambda value, change: _add_time_to_text(value, sign * change)  # noqa: E731
        if node.arguments[1].type.kind in DATES:  # only a time can be added
            return emitter.literal(None)
        if node.arguments[1].type.kind in STRINGS:
            change = emitter.apply(_time_alone, [emitter.convert(node.arguments[1], Domain.TEXT)])
        else:
            change = emitter.convert(node.arguments[1], Domain.TIME)
        return emitter.apply(add, [emitter.convert(node.arguments[0], domain), change], nulls=False)

    return emit


special("addtime", least=2, most=2, result=_add_time_type)(_add_time(1))
special("subtime", least=2, most=2, result=_add_time_type)(_add_time(-1))


def _timestamp(moment: int, change: int | None = None) -> int | None:
    return moment if change is None else from_microseconds(to_microseconds(moment) + change)


@special(
    "timestamp", least=1, most=2,
    result=lambda arguments: datetime_type(max(map(fraction_digits, arguments))),
)  # fmt: skip
def timestamp(emitter: Emitter, node: Call) -> Fragment:
    if len(node.arguments) == 2 and node.arguments[1].type.kind in DATES:
        return emitter.literal(None)
    return emitter.apply(_timestamp, list(map(emitter.convert, node.arguments, (Domain.DATETIME, Domain.TIME))))


def _timediff_of(left: tuple[bool, int | None], right: tuple[bool, int | None]) -> int | None:
    if left[0] != right[0] or left[1] is None or right[1] is None:
        return None
    if left[0]:
        return _clipped(to_microseconds(left[1]) - to_microseconds(right[1]))
    return _clipped(left[1] - right[1])


@special(
    "timediff", least=2, most=2,
    result=lambda arguments: time_type(max(map(fraction_digits, arguments))),
)  # fmt: skip
def timediff(emitter: Emitter, node: Call) -> Fragment:
    """Of two times or of two dates with time; NULL for one of each."""
    readers: list[Callable[..., tuple[bool, int | None]]] = []
    fragments = []
    for argument in node.arguments:
        if argument.type.kind in DATES:
            readers.append(lambda moment: (True, moment))
            fragments.append(emitter.convert(argument, Domain.DATETIME))
        elif argument.type.kind is Kind.TIME:
            readers.append(lambda value: (False, value))
            fragments.append(emitter.convert(argument, Domain.TIME))
        else:
            readers.append(_read_either)
            fragments.append(emitter.convert(argument, Domain.TEXT))
    first, second = readers
    return emitter.apply(lambda left, right: _timediff_of(first(left), second(right)), fragments, nulls=False)
