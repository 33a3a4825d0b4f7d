"""Parts of dates and times: YEAR … MICROSECOND, weeks, names, EXTRACT, day numbers.

Zero dates and dates with zero parts are ordinary values where a part is only read; where
the place in the calendar matters (weeks, weekdays, day numbers) they give NULL.
EXTRACT(unit FROM x) is the call `extract(unit, x)` with the unit's name as a literal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.expressions.notices import say
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values.conversion import conversion
from dataflow.values.temporal import (
    HOUR,
    MINUTE,
    SECOND,
    date_part,
    days_in_month,
    from_days,
    pack,
    time_part,
    to_days,
    unpack,
)
from dataflow.values.temporal.locales import ENGLISH, locales
from dataflow.values.types import BIGINT, DATE, INT, INTEGERS, REALS, STRINGS, TEMPORALS, Kind, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def fraction_digits(expression: Expression) -> int:
    """How many digits a second has after its point when `expression` is read as a time."""
    given = expression.type
    if given.kind in TEMPORALS or given.kind is Kind.DECIMAL:
        return min(max(given.scale, 0), 6)
    if given.kind in INTEGERS or given.kind in (Kind.YEAR, Kind.BIT):
        return 0
    if isinstance(expression, Literal) and expression.value is None:
        return 0
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        digits = expression.value.rpartition(".")[2] if "." in expression.value else ""
        return min(len(digits) - len(digits.lstrip("0123456789")), 6)
    return 6


def seconds_digits(expression: Expression) -> int:
    """The same when `expression` is read as a number of seconds."""
    return 6 if expression.type.kind in STRINGS or expression.type.kind in REALS else fraction_digits(expression)


def time_type(digits: int) -> SqlType:
    return SqlType(Kind.TIME, scale=digits)


def datetime_type(digits: int) -> SqlType:
    return SqlType(Kind.DATETIME, scale=digits)


def unit_name(expression: Expression) -> str:
    """The literal interval unit, in upper case."""
    assert isinstance(expression, Literal) and isinstance(expression.value, str), "units are literals"
    return expression.value.upper()


def day_number(moment: int) -> int | None:
    """TO_DAYS, or None where the calendar has no such day."""
    year, month, day = unpack(moment)[:3]
    return to_days(year, month, day) if month and day else None


@function("date", arguments=(Domain.DATETIME,), result=DATE)
def date(moment: int) -> int:
    return date_part(moment)


@function("time", arguments=(Domain.TIME,), result=lambda arguments: time_type(fraction_digits(arguments[0])))
def time(value: int) -> int:
    return value


@function("year", arguments=(Domain.DATETIME,), result=INT)
def year_of(moment: int) -> int:
    return unpack(moment)[0]


@function("month", arguments=(Domain.DATETIME,), result=INT)
def month_of(moment: int) -> int:
    return unpack(moment)[1]


@function("dayofmonth", "day", arguments=(Domain.DATETIME,), result=INT)
def day_of(moment: int) -> int:
    return unpack(moment)[2]


@function("quarter", arguments=(Domain.DATETIME,), result=INT)
def quarter(moment: int) -> int:
    return (unpack(moment)[1] + 2) // 3


@function("hour", arguments=(Domain.TIME,), result=INT)
def hour_of(value: int) -> int:
    return abs(value) // HOUR


@function("minute", arguments=(Domain.TIME,), result=INT)
def minute_of(value: int) -> int:
    return abs(value) // MINUTE % 60


@function("second", arguments=(Domain.TIME,), result=INT)
def second_of(value: int) -> int:
    return abs(value) // SECOND % 60


@function("microsecond", arguments=(Domain.TIME,), result=INT)
def microsecond_of(value: int) -> int:
    return abs(value) % SECOND


@function("weekday", arguments=(Domain.DAY,), result=INT)
def weekday(moment: int) -> int | None:
    """0 is Monday."""
    days = day_number(moment)
    return None if days is None else (days + 5) % 7


@function("dayofweek", arguments=(Domain.DAY,), result=INT)
def day_of_week(moment: int) -> int | None:
    """1 is Sunday."""
    days = day_number(moment)
    return None if days is None else (days + 6) % 7 + 1


NAME_LENGTH_MAX = 64
"""Of a month or day in any language."""


@function("dayname", arguments=(Domain.DAY,), result=text(9))
@function("dayname in", arguments=(Domain.DATETIME, Domain.TEXT), result=text(NAME_LENGTH_MAX))
def day_name(moment: int, locale: str = ENGLISH) -> str | None:
    number = weekday(moment)
    return None if number is None else locales()[locale].days[number]


@function("monthname", arguments=(Domain.DATETIME,), result=text(9))
@function("monthname in", arguments=(Domain.DATETIME, Domain.TEXT), result=text(NAME_LENGTH_MAX))
def month_name(moment: int, locale: str = ENGLISH) -> str | None:
    month = unpack(moment)[1]
    return locales()[locale].months[month - 1] if month else None


@function("dayofyear", arguments=(Domain.DAY,), result=INT)
def day_of_year(moment: int) -> int | None:
    days = day_number(moment)
    return None if days is None else days - to_days(unpack(moment)[0], 1, 1) + 1


@function("last_day", arguments=(Domain.DATETIME,), result=DATE)
def last_day(moment: int) -> int | None:
    year, month = unpack(moment)[:2]
    return pack(year, month, days_in_month(year, month)) if month else None


@function("to_days", arguments=(Domain.DAY,), result=BIGINT)
def to_days_(moment: int) -> int | None:
    return day_number(moment)


@function("to_seconds", arguments=(Domain.DAY,), result=BIGINT)
def to_seconds(moment: int) -> int | None:
    days = day_number(moment)
    return None if days is None else days * 86400 + time_part(moment) // SECOND


@function("from_days", arguments=(Domain.INTEGER,), result=DATE)
def from_days_(days: int) -> int:
    return from_days(days)


def week_of(days: int, year: int, mode: int, in_week_year: bool = False) -> tuple[int, int]:
    """(year, week) of a day number in WEEK's `mode`; with `in_week_year` there is no week 0."""
    monday_first = bool(mode & 1)
    whole_first = bool(mode & 4) == monday_first  # week 1 is the first that starts in the year
    in_week_year = in_week_year or bool(mode & 2)

    def first_week(of: int) -> int:
        new_year = to_days(of, 1, 1)
        passed = (new_year + 5 + (not monday_first)) % 7
        started = passed == 0 if whole_first else passed < 4
        return new_year - passed if started else new_year + 7 - passed

    if days < first_week(year):
        if not in_week_year:
            return year, 0
        year -= 1
    elif in_week_year and days >= first_week(year + 1):
        year += 1
    return year, (days - first_week(year)) // 7 + 1


@function("week", arguments=(Domain.DAY, Domain.INTEGER), optional=1, nulls=True, result=INT)
def week(moment: int | None, mode: int | None = 0) -> int | None:
    """NULL as the mode is 0."""
    days = None if moment is None else day_number(moment)
    return None if moment is None or days is None else week_of(days, unpack(moment)[0], mode or 0)[1]


@function("weekofyear", arguments=(Domain.DAY,), result=INT)
def week_of_year(moment: int) -> int | None:
    return week(moment, 3)


@function("yearweek", arguments=(Domain.DAY, Domain.INTEGER), optional=1, nulls=True, result=INT)
def year_week(moment: int | None, mode: int | None = 0) -> int | None:
    days = None if moment is None else day_number(moment)
    if moment is None or days is None:
        return None
    year, number = week_of(days, unpack(moment)[0], mode or 0, in_week_year=True)
    return year * 100 + number


_DATE_UNITS: dict[str, Callable[[int, int, int], int]] = {
    "YEAR": lambda year, month, day: year,
    "QUARTER": lambda year, month, day: (month + 2) // 3,
    "MONTH": lambda year, month, day: month,
    "DAY": lambda year, month, day: day,
    "YEAR_MONTH": lambda year, month, day: year * 100 + month,
}
_CLOCK = {"HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND, "MICROSECOND": 1}


def _extract_clock(unit: str, day: int, value: int) -> int:
    """The parts from the first to the last unit, two digits each and six for microseconds."""
    first, _, last = unit.rpartition("_")
    names = list(_CLOCK)
    number = day if first == "DAY" else 0
    start = 0 if first == "DAY" else names.index(first or last)
    rest = abs(value) if start == 0 else abs(value) % _CLOCK[names[start - 1]]
    for name in names[start : names.index(last) + 1]:
        part, rest = divmod(rest, _CLOCK[name])
        number = number * (1_000_000 if name == "MICROSECOND" else 100) + part
    return -number if value < 0 else number


@special("extract", least=2, most=2, result=BIGINT)
def extract(emitter: Emitter, node: Call) -> Fragment:
    unit, source = unit_name(node.arguments[0]), node.arguments[1]
    if unit in _DATE_UNITS:
        part = _DATE_UNITS[unit]
        return emitter.apply(lambda moment: part(*unpack(moment)[:3]), [emitter.convert(source, Domain.DATETIME)], nulls=False)
    if unit == "WEEK":
        return emitter.apply(week, [emitter.convert(source, Domain.DATETIME)], nulls=False)
    if unit.rpartition("_")[2] not in _CLOCK:
        raise InvalidStatement(Condition.PARSE_ERROR, unit, 1)
    if not unit.startswith("DAY_") or source.type.kind is Kind.TIME:
        return emitter.apply(
            lambda value: _extract_clock(unit, 0, value), [emitter.convert(source, Domain.TIME)], nulls=False
        )
    return emitter.apply(
        lambda moment: _extract_clock(unit, unpack(moment)[2], time_part(moment)),
        [emitter.convert(source, Domain.DATETIME)],
        nulls=False,
    )


@special("without zeros", least=2, most=2, result=lambda arguments: arguments[0].type)
def without_zeros(emitter: Emitter, node: Call) -> Fragment:
    """A date that was read: NULL if it is one that NO_ZERO_DATE or NO_ZERO_IN_DATE, whichever are named, do not allow."""
    modes = node.arguments[1]
    assert isinstance(modes, Literal)
    no_zero, no_zero_in = ("NO_ZERO_DATE" in str(modes.value), "NO_ZERO_IN_DATE" in str(modes.value))
    written = conversion(node.type, Domain.TEXT).function
    assert written is not None

    def checked(moment: int) -> int | None:
        year, month, day = unpack(moment)[:3]
        if (month and day) or not (no_zero_in if year or month or day else no_zero):
            return moment
        say(Condition.INCORRECT_MOMENT, "datetime", written(moment))
        return None

    return emitter.apply(checked, [emitter.emit(node.arguments[0])], result_nullable=True)
