"""Dates and times read from text and numbers as liberally as MySQL reads them.

Each reader returns the value (None where there is none) and the `Flaw`s it met. A value with
flaws is what MySQL goes on with outside of strict mode. Which flaws matter is the caller's
decision: an expression ignores them, a column in strict mode refuses them.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from enum import IntFlag

from dataflow.values.modes import LENIENT_MODES, Modes
from dataflow.values.numerals import whole_number
from dataflow.values.temporal import packed as calendar


class Flaw(IntFlag):
    NONE = 0
    TRUNCATED = 1
    """Something that is no part of a date follows, or there is no date at all."""
    OUT_OF_RANGE = 2
    ZERO_DATE = 4
    ZERO_IN_DATE = 8


Read = tuple[int | None, Flaw]
_NONE = Flaw.NONE
_PLAIN = re.compile(r"[0-9]{4}-[0-9][0-9]-[0-9][0-9](?:[ T][0-9][0-9]:[0-9][0-9]:[0-9][0-9](?:\.(?:[0-9]{3}|[0-9]{6}))?)?\Z")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)\Z")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SPACE = frozenset(" \t\n\v\f\r")
_DIGITS = frozenset("0123456789")


def check_date(year: int, month: int, day: int, nonzero: bool, modes: Modes) -> Flaw:
    """What `modes` object to in a date whose parts are in range."""
    if not nonzero:
        return Flaw.ZERO_DATE if modes.no_zero_date else _NONE
    if month == 0 or day == 0:
        return Flaw.ZERO_IN_DATE if modes.no_zero_in_date else _NONE
    if day > 28 and not modes.allow_invalid_dates and day > calendar.days_in_month(year, month):
        return Flaw.OUT_OF_RANGE
    return _NONE


def read_datetime(text: str, modes: Modes = LENIENT_MODES) -> Read:
    """A date with or without a time; a seventh fractional digit rounds the sixth."""
    if _PLAIN.match(text) is not None:
        try:
            return calendar.from_datetime(datetime.fromisoformat(text)), _NONE
        except ValueError:
            pass  # a zero date, or none at all
    return _read_loose(text, modes)


def _read_loose(text: str, modes: Modes, whole_only: bool = False) -> Read:
    end = len(text)
    at = 0
    while at < end and text[at] in _SPACE:
        at += 1
    if at == end or text[at] not in _DIGITS:
        return None, Flaw.TRUNCATED
    scan = at
    while scan < end and (text[scan] in _DIGITS or text[scan] == "T"):
        scan += 1
    digits = scan - at
    unbroken = scan == end or text[scan] == "."
    width = (4 if digits in (4, 8) or digits >= 14 else 2) if unbroken else 4
    first_width = width
    parts: list[int] = []
    lengths: list[int] = []
    delimited = spaced = False
    last = at
    while len(parts) < 7 and at < end and text[at] in _DIGITS:
        position = len(parts)
        start = at
        free = not unbroken and position != 6
        at += 1
        left = width - 1
        while at < end and text[at] in _DIGITS and (free or left > 0):
            at += 1
            left -= 1
        if len(text[start:at].lstrip("0")) > 6:
            return None, Flaw.TRUNCATED
        parts.append(int(text[start:at]))
        lengths.append(at - start)
        width = 2
        last = at
        if at == end:
            break
        if position == 2 and text[at] == "T":
            spaced = True
            at += 1
            continue
        if position == 5:
            if text[at] == ".":
                at += 1
                last = at
                width = 6
            else:
                break
            continue
        while at < end and (text[at] in _PUNCTUATION or text[at] in _SPACE):
            if text[at] in _SPACE:
                if position != 2 and position != 6:
                    return None, Flaw.TRUNCATED
                spaced = True
            delimited = True
            at += 1
        last = at
    if delimited and not spaced and whole_only:
        return None, Flaw.TRUNCATED
    return _assemble(text, last, parts, lengths, first_width if unbroken else (lengths or [0])[0], modes)


def _assemble(text: str, at: int, parts: list[int], lengths: list[int], year_width: int, modes: Modes) -> Read:
    count = len(parts)
    if count > 6:
        parts[6] *= 10 ** (6 - lengths[6])
    year, month, day, hour, minute, second, fraction = (parts + [0] * 7)[:7]
    nonzero = any(parts)
    if year_width == 2 and nonzero:
        year += 2000 if year < 70 else 1900
    end = len(text)
    if count < 3 or year > 9999 or month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        if not nonzero and not text[at:].strip():
            return None, Flaw.ZERO_DATE
        return None, Flaw.TRUNCATED
    flaw = check_date(year, month, day, nonzero, modes)
    if flaw:
        return None, flaw
    value = calendar.pack(year, month, day, hour, minute, second, fraction)
    if count > 6 and lengths[6] == 6 and at < end and text[at] in _DIGITS:
        if text[at] >= "5":
            value = _next_microsecond(value)
        while at < end and text[at] in _DIGITS:
            at += 1
    offset = _OFFSET.match(text, at) if count > 3 else None
    if offset is not None:
        sign, hours, minutes = offset.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        moved = calendar.from_microseconds(
            calendar.to_microseconds(value) - int(shift.total_seconds()) * calendar.SECOND * (-1 if sign == "-" else 1)
        )
        return (None, Flaw.TRUNCATED) if moved is None or int(minutes) > 59 else (moved, _NONE)
    return value, (Flaw.TRUNCATED if text[at:].strip(" \t\n\v\f\r") else _NONE)


def _next_microsecond(value: int) -> int:
    if (value & 0xFFFFFF) < 999_999:
        return value + 1
    year, month, day, hour, minute, second, _ = calendar.unpack(value)
    if second < 59:  # also in dates that are none, like 2001-00-00
        return calendar.pack(year, month, day, hour, minute, second + 1)
    return calendar.from_microseconds(calendar.to_microseconds(value) + 1) or value


def read_number(number: int, modes: Modes = LENIENT_MODES) -> Read:
    """20200102, 20200102030405, 200102 …"""
    flaw = Flaw.TRUNCATED
    if number == 0:
        return (None, Flaw.ZERO_DATE) if modes.no_zero_date else (0, _NONE)
    if number < 101 or number > 99_999_999_999_999:
        return None, flaw
    if number < 10_000_101_000_000:
        if number <= 691_231:
            number = (number + 20_000_000) * 1_000_000
        elif number < 700_101:
            return None, flaw
        elif number <= 991_231:
            number = (number + 19_000_000) * 1_000_000
        elif number < 10_000_101:
            return None, flaw
        elif number <= 99_991_231:
            number *= 1_000_000
        elif number < 101_000_000:
            return None, flaw
        elif number <= 691_231_235_959:
            number += 20_000_000_000_000
        elif number < 700_101_000_000:
            return None, flaw
        elif number <= 991_231_235_959:
            number += 19_000_000_000_000
    day_number, time = divmod(number, 1_000_000)
    year, month, day = day_number // 10_000, day_number // 100 % 100, day_number % 100
    hour, minute, second = time // 10_000, time // 100 % 100, time % 100
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        return None, flaw
    flaw = check_date(year, month, day, True, modes)
    return (None, flaw) if flaw else (calendar.pack(year, month, day, hour, minute, second), _NONE)


def read_decimal(number: Decimal | float, modes: Modes = LENIENT_MODES) -> Read:
    """A number with a fraction of a second: 20200102030405.678"""
    exact = Decimal(number)
    if not exact.is_finite() or exact < 0 or exact > 99_999_999_999_999:
        return None, Flaw.TRUNCATED
    whole = int(exact.to_integral_value(ROUND_FLOOR))
    value, flaw = read_number(whole, modes)
    if value is None or exact == whole or 0 < whole < 101_000_000:
        return value, flaw  # a date has no fraction
    fraction = int((exact - whole).scaleb(6) + Decimal("0.5"))
    if fraction >= calendar.SECOND:
        return calendar.from_microseconds(calendar.to_microseconds(value) + calendar.SECOND), flaw
    return value + fraction, flaw


def read_time(text: str) -> Read:
    """'12:34:56.789', '3 12:00', '123456', or the time of a full date and time."""
    stripped = text.lstrip(" \t\n\v\f\r")
    negative = stripped[:1] == "-"
    if negative:
        stripped = stripped[1:]
    if not stripped:
        return None, Flaw.TRUNCATED
    if len(stripped) >= 12:
        value, flaw = _read_loose(stripped, LENIENT_MODES, whole_only=True)
        if value is not None and (":" in stripped or "T" in stripped or len(stripped.partition(".")[0]) >= 12):
            return calendar.time_part(value), flaw
    return _read_clock(stripped, negative)


def _read_clock(text: str, negative: bool) -> Read:
    at = 0
    numbers: list[int] = []

    def number() -> int:
        nonlocal at
        start = at
        while at < len(text) and text[at] in _DIGITS:
            at += 1
        return whole_number(text[start:at])

    first = number()
    if at == 0 and text[:1] not in (":", "."):
        return None, Flaw.TRUNCATED
    if first > 0xFFFFFFFF:
        return None, Flaw.TRUNCATED
    after = at
    while at < len(text) and text[at] in _SPACE:
        at += 1
    days = 0
    if len(text) - at > 1 and at != after and text[at] in _DIGITS:
        days = first
        numbers = [number()]
    elif len(text) - at > 1 and text[at] == ":" and text[at + 1] in _DIGITS:
        numbers = [first]
    else:
        numbers = [first // 10_000, first // 100 % 100, first % 100]
        at = after
    while len(numbers) < 3 and len(text) - at >= 2 and text[at] == ":" and text[at + 1] in _DIGITS:
        at += 1
        numbers.append(number())
    hour, minute, second = (numbers + [0, 0])[:3]
    fraction = 0
    if at < len(text) and text[at] == "." and (at + 1 == len(text) or text[at + 1] in _DIGITS):
        start = at = at + 1
        while at < len(text) and text[at] in _DIGITS:
            at += 1
        fraction = int(text[start:at][:6].ljust(6, "0")) + (text[start + 6 : at][:1] >= "5")
    if minute > 59 or second > 59:
        return None, Flaw.OUT_OF_RANGE
    if re.match(r"[eE][+-]?\d", text[at:]):
        return None, Flaw.TRUNCATED
    value = ((days * 24 + hour) * 3600 + minute * 60 + second) * calendar.SECOND + fraction
    flaw = Flaw.TRUNCATED if text[at:].strip() else _NONE
    if value > calendar.TIME_MAX:
        value, flaw = calendar.TIME_MAX, flaw | Flaw.OUT_OF_RANGE
    return (-value if negative else value), flaw


def read_time_number(number: int) -> Read:
    """123456 is 12:34:56."""
    if number > 8_385_959:
        if number >= 10_000_000_000:
            value, flaw = read_number(number)
            if value is not None:
                return calendar.time_part(value), flaw
        return calendar.TIME_MAX, Flaw.OUT_OF_RANGE
    if number < -8_385_959:
        return -calendar.TIME_MAX, Flaw.OUT_OF_RANGE
    magnitude = abs(number)
    hour, minute, second = magnitude // 10_000, magnitude // 100 % 100, magnitude % 100
    if minute > 59 or second > 59:
        return None, Flaw.OUT_OF_RANGE
    value = (hour * 3600 + minute * 60 + second) * calendar.SECOND
    return (-value if number < 0 else value), _NONE


def read_time_decimal(number: Decimal | float) -> Read:
    exact = Decimal(number)
    if not exact.is_finite():
        return None, Flaw.TRUNCATED
    whole = int(exact)
    value, flaw = read_time_number(whole)
    if value is None or flaw & Flaw.OUT_OF_RANGE or exact == whole:
        return value, flaw
    fraction = int(abs(exact - whole).scaleb(6) + Decimal("0.5"))
    magnitude = min(abs(value) + fraction, calendar.TIME_MAX)
    return (-magnitude if exact < 0 else magnitude), flaw
