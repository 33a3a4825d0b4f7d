"""Dates and times as single integers that compare like what they stand for.

A DATE, DATETIME or TIMESTAMP is packed as MySQL does it: year * 13 + month, day, hour,
minute, second and microseconds in descending significance, so '2020-00-00' and the zero
date (0) are ordinary values. A DATE has a zero time part. A TIME is signed microseconds.
"""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
TIME_MAX = 839 * HOUR - SECOND
"""838:59:59, the largest TIME; its fraction is always zero."""

_DATE_SHIFT = 41
_FRACTION_BITS = 24
_FRACTION_MASK = (1 << _FRACTION_BITS) - 1
_TIME_MASK = (1 << _DATE_SHIFT) - 1

Parts = tuple[int, int, int, int, int, int, int]


def pack(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> int:
    return ((((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second) << 24) + microsecond


def unpack(packed: int) -> Parts:
    """(year, month, day, hour, minute, second, microsecond)"""
    rest = packed >> _FRACTION_BITS
    months = rest >> 22
    return (
        months // 13,
        months % 13,
        rest >> 17 & 31,
        rest >> 12 & 31,
        rest >> 6 & 63,
        rest & 63,
        packed & _FRACTION_MASK,
    )


def date_part(packed: int) -> int:
    """The same day at midnight."""
    return packed >> _DATE_SHIFT << _DATE_SHIFT


def time_part(packed: int) -> int:
    """The time of day in microseconds."""
    rest = packed >> _FRACTION_BITS
    return ((rest >> 12 & 31) * 3600 + (rest >> 6 & 63) * 60 + (rest & 63)) * SECOND + (packed & _FRACTION_MASK)


def with_time(day: int, microseconds: int) -> int:
    """`day` at a time of day, 0 <= microseconds < 24 h."""
    seconds, fraction = divmod(microseconds, SECOND)
    return date_part(day) + ((seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 24) + fraction


def days_in_month(year: int, month: int) -> int:
    """0 for month 0. Year 0 is a leap year in neither MySQL's checks nor its arithmetic."""
    if month == 0:
        return 0
    return calendar.monthrange(year, month)[1] if year else (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month]


def to_days(year: int, month: int, day: int) -> int:
    """MySQL's TO_DAYS: days since year 0."""
    if year == 0 and month == 0:
        return 0
    if month > 2:
        leap_year = year
        days = 365 * year + 31 * (month - 1) + day - (month * 4 + 23) // 10
    else:
        leap_year = max(year - 1, 0)
        days = 365 * year + 31 * (month - 1) + day
    return days + leap_year // 4 - (leap_year // 100 + 1) * 3 // 4


def from_days(days: int) -> int:
    """The packed date of a day number; 0 outside of MySQL's calendar."""
    if days <= 365 or days >= 3_652_500:
        return 0
    ordinal = days - 365
    if ordinal > 3_652_059:
        return 0
    found = date.fromordinal(ordinal)
    return pack(found.year, found.month, found.day)


def to_microseconds(packed: int) -> int:
    """Microseconds since year 0, for arithmetic."""
    year, month, day, hour, minute, second, fraction = unpack(packed)
    return to_days(year, month, day) * DAY + (hour * 3600 + minute * 60 + second) * SECOND + fraction


def from_microseconds(microseconds: int) -> int | None:
    """The inverse of `to_microseconds`; None outside of years 1 to 9999."""
    days, rest = divmod(microseconds, DAY)
    day = from_days(days)
    return with_time(day, rest) if day else None


def round_datetime(packed: int, digits: int) -> int:
    """Rounded half up to `digits` fractional digits; 0 when that leaves year 9999."""
    fraction = packed & _FRACTION_MASK
    unit: int = 10 ** (6 - digits)
    excess = fraction % unit
    if not excess:
        return packed
    if excess * 2 < unit:
        return packed - excess
    if fraction - excess + unit < SECOND:
        return packed - excess + unit
    base = packed - fraction
    of_day = time_part(base) + SECOND
    if of_day < DAY:
        return with_time(base, of_day)
    _, month, day = unpack(packed)[:3]
    if month == 0 or day == 0:
        return packed - excess
    return from_microseconds(to_microseconds(base) + SECOND) or 0


def round_time(microseconds: int, digits: int) -> int:
    """Rounded half away from zero to `digits` fractional digits."""
    unit: int = 10 ** (6 - digits)
    magnitude = (abs(microseconds) + unit // 2) // unit * unit
    magnitude = min(magnitude, TIME_MAX)
    return -magnitude if microseconds < 0 else magnitude


def format_date(packed: int) -> str:
    months = packed >> 46
    return f"{months // 13:04d}-{months % 13:02d}-{packed >> 41 & 31:02d}"


def format_datetime(packed: int, digits: int = 0) -> str:
    rest = packed >> _FRACTION_BITS
    months = rest >> 22
    text = (
        f"{months // 13:04d}-{months % 13:02d}-{rest >> 17 & 31:02d} "
        f"{rest >> 12 & 31:02d}:{rest >> 6 & 63:02d}:{rest & 63:02d}"
    )
    return f"{text}.{packed & _FRACTION_MASK:06d}"[: 20 + digits] if digits else text


def format_time(microseconds: int, digits: int = 0) -> str:
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), SECOND)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}"[: len(text) + 1 + digits] if digits else text


def date_number(packed: int) -> int:
    """20200102"""
    year, month, day = unpack(packed)[:3]
    return year * 10000 + month * 100 + day


def datetime_number(packed: int, digits: int = 0) -> int | Decimal:
    """20200102030405, with a fraction if it has one."""
    year, month, day, hour, minute, second, fraction = unpack(packed)
    whole = ((((year * 100 + month) * 100 + day) * 100 + hour) * 100 + minute) * 100 + second
    return Decimal(f"{whole}.{fraction:06d}"[: digits - 6 or None]) if digits else whole


def time_number(microseconds: int, digits: int = 0) -> int | Decimal:
    """30405, with a fraction if it has one."""
    seconds, fraction = divmod(abs(microseconds), SECOND)
    whole = seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60
    sign = "-" if microseconds < 0 else ""
    if digits:
        return Decimal(f"{sign}{whole}.{fraction:06d}"[: digits - 6 or None])
    return -whole if sign else whole


def to_datetime(packed: int) -> datetime | None:
    """None for dates Python has no object for, such as the zero date."""
    try:
        return datetime(*unpack(packed))
    except ValueError:
        return None


def from_datetime(value: date | datetime) -> int:
    if isinstance(value, datetime):
        return pack(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return pack(value.year, value.month, value.day)


def from_timedelta(value: timedelta) -> int:
    return (value.days * 86400 + value.seconds) * SECOND + value.microseconds


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo | None:
    """A time zone by MySQL's name for it ('+02:00', 'UTC', 'Europe/Berlin'); None if unknown."""
    if name.upper() in ("UTC", "SYSTEM", "+00:00", "-00:00"):
        return UTC
    if name[:1] in ("+", "-"):
        hours, _, minutes = name[1:].partition(":")
        if not (hours.isdigit() and minutes.isdigit()) or int(minutes) > 59 or int(hours) > 14:
            return None
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        if offset > timedelta(hours=14):
            return None
        return timezone(-offset if name[0] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def to_utc(packed: int, name: str) -> int:
    """The UTC time of a local one; dates Python cannot hold are left alone."""
    return _moved(packed, zone(name), UTC)


def from_utc(packed: int, name: str) -> int:
    return _moved(packed, UTC, zone(name))


def _moved(packed: int, source: tzinfo | None, target: tzinfo | None) -> int:
    if source is target or source is None or target is None:
        return packed
    found = to_datetime(packed)
    if found is None:
        return packed
    try:
        return from_datetime(found.replace(tzinfo=source).astimezone(target))
    except OverflowError:
        return packed
