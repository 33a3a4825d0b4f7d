"""Dates and times made of numbers and the other way round: Unix time, seconds, periods, time zones.

The session's time zone is UTC here: a planner for another zone wraps calls in CONVERT_TZ.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression
from dataflow.expressions.notices import say
from dataflow.functions.date_formats import date_format
from dataflow.functions.date_parts import (
    datetime_type,
    day_number,
    fraction_digits,
    seconds_digits,
    time_type,
)
from dataflow.functions.numeric import Number
from dataflow.functions.registry import Domain, function
from dataflow.values.result_limits import planned
from dataflow.values.temporal import (
    HOUR,
    MINUTE,
    SECOND,
    TIME_MAX,
    from_days,
    from_microseconds,
    from_utc,
    pack,
    round_datetime,
    round_time,
    to_days,
    to_microseconds,
    to_utc,
    zone,
)
from dataflow.values.types import BIGINT, DATE, SqlType, decimal, text

Arguments = tuple[Expression, ...]

UNIX_SECONDS_MAX = 32_536_771_199
"""3001-01-18 23:59:59, the last moment of MySQL 8.0.28 and later."""
_UNIX_START = to_microseconds(pack(1970, 1, 1))


def _microseconds(seconds: Number) -> int:
    return int((Decimal(seconds) * SECOND).to_integral_value(ROUND_HALF_UP))


def _unix_type(arguments: Arguments) -> SqlType:
    digits = fraction_digits(arguments[0])
    return decimal(11 + digits, digits) if digits else BIGINT


def unix_seconds(moment: int) -> int:
    """From 1970 to a moment in UTC."""
    return (to_microseconds(moment) - _UNIX_START) // SECOND


@function("unix_timestamp", arguments=(Domain.DATETIME,), result=_unix_type, specialise=True)
def unix_timestamp(arguments: Arguments) -> Callable[[int], int | Decimal]:
    """0 before 1970 and after what a TIMESTAMP can hold. Without an argument it is a fact of the session."""
    digits = fraction_digits(arguments[0])

    def apply(moment: int) -> int | Decimal:
        passed = to_microseconds(moment) - _UNIX_START if day_number(moment) is not None else 0
        if not 0 <= passed // SECOND <= UNIX_SECONDS_MAX:
            passed = 0
        if not digits:
            return passed // SECOND
        return Decimal(passed).scaleb(-6).quantize(Decimal(1).scaleb(-digits), ROUND_DOWN)

    return apply


def _moment_of(seconds: Number, digits: int) -> int | None:
    if not 0 <= seconds < UNIX_SECONDS_MAX + 1:
        return None
    moment = from_microseconds(_UNIX_START + _microseconds(seconds))
    return None if moment is None else round_datetime(moment, digits)


def _from_unix_type(arguments: Arguments) -> SqlType:
    return text(collation=planned().collation) if len(arguments) > 1 else datetime_type(seconds_digits(arguments[0]))


@function(
    "from_unixtime", arguments=(Domain.NUMBER, Domain.TEXT), optional=1, result=_from_unix_type, specialise=True
)
def from_unixtime(arguments: Arguments) -> Callable[..., int | str | None]:
    digits = seconds_digits(arguments[0])

    def apply(seconds: Number, layout: str | None = None) -> int | str | None:
        moment = _moment_of(seconds, digits)
        return moment if moment is None or layout is None else date_format(moment, layout)

    return apply


@function(
    "convert_tz", arguments=(Domain.DATETIME, Domain.TEXT, Domain.TEXT),
    result=lambda arguments: datetime_type(fraction_digits(arguments[0])),
)  # fmt: skip
def convert_tz(moment: int, source: str, target: str) -> int | None:
    """Moments outside of what a TIMESTAMP can hold stay as they are."""
    if zone(source) is None or zone(target) is None or not moment:
        return None
    in_utc = to_utc(moment, source)
    seconds = (to_microseconds(in_utc) - _UNIX_START) // SECOND
    if not 0 < seconds <= UNIX_SECONDS_MAX:
        return moment
    if zone(source) is not UTC and from_utc(in_utc, source) != moment:
        in_utc = _end_of_gap(in_utc, source)
    return from_utc(in_utc, target)


def _end_of_gap(in_utc: int, source: str) -> int:
    """A local time that clocks skip means the moment at which they were put forward."""
    low, high = to_microseconds(in_utc) // SECOND - 86400, to_microseconds(in_utc) // SECOND

    def offset(second: int) -> int:
        moment = from_microseconds(second * SECOND)
        assert moment is not None
        return to_microseconds(from_utc(moment, source)) // SECOND - second

    after = offset(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset(middle) == after else (middle, high)
    found = from_microseconds(high * SECOND)
    assert found is not None
    return found


def _within(value: int, written: object) -> int:
    """The TIME of some microseconds: what is beyond the largest one is that, with a warning."""
    if -TIME_MAX <= value <= TIME_MAX:
        return value
    say(Condition.TRUNCATED_VALUE, "time", written)
    return max(-TIME_MAX, min(TIME_MAX, value))


@function(
    "sec_to_time", arguments=(Domain.NUMBER,), specialise=True,
    result=lambda arguments: time_type(seconds_digits(arguments[0])),
)  # fmt: skip
def sec_to_time(arguments: Arguments) -> Callable[[Number], int]:
    digits = seconds_digits(arguments[0])
    return lambda seconds: round_time(_within(_microseconds(seconds), seconds), digits)


@function("time_to_sec", arguments=(Domain.TIME,), result=BIGINT)
def time_to_sec(value: int) -> int:
    seconds = abs(value) // SECOND
    return -seconds if value < 0 else seconds


@function(
    "maketime", arguments=(Domain.INTEGER, Domain.INTEGER, Domain.NUMBER), specialise=True,
    result=lambda arguments: time_type(seconds_digits(arguments[2])),
)  # fmt: skip
def maketime(arguments: Arguments) -> Callable[[int, int, Number], int | None]:
    digits = seconds_digits(arguments[2])

    def apply(hour: int, minute: int, second: Number) -> int | None:
        if not 0 <= minute < 60 or not 0 <= second < 60:
            return None
        size = abs(hour) * HOUR + minute * MINUTE + _microseconds(second)
        return round_time(_within(-size if hour < 0 else size, f"{hour:02d}:{minute:02d}:{int(second):02d}"), digits)

    return apply


def _full_year(year: int) -> int:
    """Two digits mean 1970 to 2069."""
    return year + (2000 if year < 70 else 1900) if year < 100 else year


@function("makedate", arguments=(Domain.INTEGER, Domain.INTEGER), result=DATE)
def makedate(year: int, day: int) -> int | None:
    if day <= 0 or not 0 <= year <= 9999:
        return None
    return from_days(to_days(_full_year(year), 1, 1) + day - 1) or None


def _period_months(period: int, name: str) -> int:
    if period <= 0 or not 1 <= period % 100 <= 12:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, name)
    return _full_year(period // 100) * 12 + period % 100 - 1


@function("period_add", arguments=(Domain.INTEGER, Domain.INTEGER), result=BIGINT)
def period_add(period: int, months: int) -> int:
    total = _period_months(period, "period_add") + months
    return _full_year(total // 12) * 100 + total % 12 + 1


@function("period_diff", arguments=(Domain.INTEGER, Domain.INTEGER), result=BIGINT)
def period_diff(left: int, right: int) -> int:
    return _period_months(left, "period_diff") - _period_months(right, "period_diff")


def _on_date_type(arguments: Arguments) -> SqlType:
    return datetime_type(fraction_digits(arguments[0]))


@function("on date", arguments=(Domain.TIME, Domain.DATETIME), result=_on_date_type)
def on_date(value: int, date: int) -> int | None:
    """A TIME among dates: that time of a day, the current one where the planner calls this."""
    return from_microseconds(to_microseconds(date) + value)
