"""STR_TO_DATE: text read by a layout.

The layout decides the type of the result: a DATE, a TIME or a DATETIME. Under NO_ZERO_DATE a date with a zero part is NULL,
under NO_ZERO_IN_DATE alone if another part is not zero; days are not checked against their month.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from dataflow.errors import Condition
from dataflow.expressions.expression import Expression, Literal
from dataflow.expressions.notices import say
from dataflow.functions.date_parts import DAY_NAMES, MONTH_NAMES, datetime_type, time_type
from dataflow.functions.registry import Domain, function
from dataflow.values.numerals import SHOWN_MAX
from dataflow.values.temporal import HOUR, MINUTE, SECOND, from_days, pack, to_days, unpack
from dataflow.values.types import DATE, Kind, SqlType

Arguments = tuple[Expression, ...]

_CLOCK_LETTERS = frozenset("HISThiklrs")
_DATE_LETTERS = frozenset("MVUXYWabcjmvuxyw")
"""A day alone is none: with hours it is a TIME of days and hours."""
_NUMBERS = {
    "Y": 4, "y": 2, "m": 2, "c": 2, "d": 2, "e": 2, "D": 2, "h": 2, "I": 2, "l": 2, "k": 2, "H": 2, "i": 2,
    "s": 2, "S": 2, "f": 6, "w": 1, "j": 3, "V": 2, "U": 2, "v": 2, "u": 2, "X": 4, "x": 4,
}  # fmt: skip
_WORDS = {
    "M": MONTH_NAMES,
    "b": tuple(name[:3] for name in MONTH_NAMES),
    "W": DAY_NAMES,
    "a": tuple(name[:3] for name in DAY_NAMES),
}
_CLASSES = {".": re.compile(r"[!-/:-@\[-`{-~]*"), "@": re.compile(r"[A-Za-z]*"), "#": re.compile(r"[0-9]*")}
_PLACES = {"m": "month", "c": "month", "d": "day", "e": "day", "D": "day", "i": "minute", "s": "second", "S": "second",
           "k": "hour", "H": "hour", "h": "hour", "I": "hour", "l": "hour", "j": "year_day"}  # fmt: skip
_LETTERS = re.compile(r"[A-Za-z]*")
_SPACE = re.compile(r"[ \t\n\v\f\r]*")


class Mismatch(Exception):
    pass


@dataclass(slots=True)
class _Found:
    """What was read so far; -1 and None stand for not given."""

    parts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "fraction", "year_day", "week_day"), 0))
    half: int = 0
    twelve_hours: bool = False
    week: tuple[str, int] | None = None
    week_year: tuple[str, int] | None = None


def _two_digit_year(year: int) -> int:
    return year + (2000 if year < 70 else 1900) if year < 100 else year


def _read(value: str, at: int, layout: str, found: _Found) -> int:
    """Reads `value` from `at` on; returns where it stopped."""
    letters = iter(layout)
    for letter in letters:
        if at >= len(value):
            break
        at = _SPACE.match(value, at).end()  # type: ignore[union-attr]
        if at >= len(value):
            break
        specifier = next(letters, None) if letter == "%" else None
        if specifier is not None:
            at = _read_part(value, at, specifier, found)
        elif not letter.isspace():
            if value[at] != letter:
                raise Mismatch
            at += 1
    return at


def _read_part(value: str, at: int, letter: str, found: _Found) -> int:
    if letter in _NUMBERS:
        return _read_number(value, at, letter, found)
    if letter in _WORDS:
        return _read_name(value, at, letter, found)
    if letter in _CLASSES:
        return _CLASSES[letter].match(value, at).end()  # type: ignore[union-attr]
    if letter == "p" and found.twelve_hours and value[at : at + 2].upper() in ("AM", "PM"):
        found.half = 12 if value[at].upper() == "P" else 0
        return at + 2
    if letter in "rT":
        inner = _Found(found.parts)
        at = _read(value, at, "%I:%i:%S %p" if letter == "r" else "%H:%i:%S", inner)
        _settle_hour(inner)
        return at
    raise Mismatch


def _read_name(value: str, at: int, letter: str, found: _Found) -> int:
    """The name of a month or a day, or as much of its beginning as no other name has."""
    end = _LETTERS.match(value, at).end()  # type: ignore[union-attr]
    word = value[at:end].lower()
    names = [name.lower() for name in _WORDS[letter]]
    meant = [name for name in names if name.startswith(word)] if word not in names else [word]
    if not word or len(meant) != 1:
        raise Mismatch
    found.parts["month" if letter in "Mb" else "week_day"] = names.index(meant[0]) + 1
    return end


def _read_number(value: str, at: int, letter: str, found: _Found) -> int:
    match = re.compile(rf"[0-9]{{1,{_NUMBERS[letter]}}}").match(value, at)
    if match is None:
        raise Mismatch
    number, width = int(match[0]), len(match[0])
    if letter in "Yy":
        found.parts["year"] = _two_digit_year(number) if width <= 2 else number
    elif letter in _PLACES:
        found.parts[_PLACES[letter]] = number
        found.twelve_hours = found.twelve_hours or letter in "hIl"
    elif letter == "f":
        found.parts["fraction"] = number * 10 ** (6 - width)
    elif letter == "w":
        if number > 6:
            raise Mismatch
        found.parts["week_day"] = number or 7
    elif letter in "Xx":
        found.week_year = (letter, number)
    else:
        if number > 53 or (letter in "Vv" and not number):
            raise Mismatch
        found.week = (letter, number)
    return match.end() + (2 if letter == "D" else 0)


def _settle_hour(found: _Found) -> None:
    if found.twelve_hours:
        if not 1 <= found.parts["hour"] <= 12:
            raise Mismatch
        found.parts["hour"] = found.parts["hour"] % 12 + found.half


def _settle_day(found: _Found) -> None:
    """A day of the year, or a week and a day of the week, say which date it is."""
    parts = found.parts
    days = None
    if parts["year_day"]:
        days = to_days(parts["year"], 1, 1) + parts["year_day"] - 1
    if found.week and parts["week_day"]:
        letter, week = found.week
        strict = letter in "Vv"
        if strict != bool(found.week_year) or (found.week_year and (found.week_year[0] == "X") != (letter == "V")):
            raise Mismatch
        new_year = to_days(found.week_year[1] if found.week_year else parts["year"], 1, 1)
        if letter in "VU":
            passed = (new_year + 6) % 7
            days = new_year + (7 if passed else 0) - passed + (week - 1) * 7 + parts["week_day"] % 7
        else:
            passed = (new_year + 5) % 7
            days = new_year + (0 if passed <= 3 else 7) - passed + (week - 1) * 7 + parts["week_day"] - 1
    if days is not None:
        date = from_days(days)
        if not date:
            raise Mismatch
        parts["year"], parts["month"], parts["day"] = unpack(date)[:3]


def parse(value: str, layout: str, kind: Kind, zeros: bool = False, zero_dates: bool = False) -> int | None:
    """`zeros`: a part of a date may be zero; `zero_dates`: all of them together may."""
    found = _Found()
    try:
        end = _read(value, 0, layout, found)
        _settle_hour(found)
        _settle_day(found)
    except Mismatch:
        return _refused(value)
    year, month, day, hour, minute, second, fraction = list(found.parts.values())[:7]
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        return _refused(value)
    if value[end:].strip():
        say(Condition.TRUNCATED_VALUE, kind.name.lower(), value[:SHOWN_MAX])
    if kind is Kind.TIME:
        return (day * 24 + hour) * HOUR + minute * MINUTE + second * SECOND + fraction
    if not (zeros or (year and month and day) or (zero_dates and not (year or month or day))):
        return _refused(value)
    return pack(year, month, day) if kind is Kind.DATE else pack(year, month, day, hour, minute, second, fraction)


def _refused(value: str) -> int | None:
    say(Condition.WRONG_VALUE_FOR_FUNCTION, "datetime", value[:SHOWN_MAX], "str_to_date")
    return None


def layout_type(arguments: Arguments) -> SqlType:
    layout = arguments[1].value if isinstance(arguments[1], Literal) else None
    if not isinstance(layout, str):
        return datetime_type(6)
    letters = frozenset(re.findall(r"%(.)", layout, re.DOTALL))
    digits = 6 if "f" in letters else 0
    has_clock = bool(letters & _CLOCK_LETTERS) or bool(digits)
    has_date = bool(letters & _DATE_LETTERS)
    if has_clock:
        return datetime_type(digits) if has_date else time_type(digits)
    return DATE


@function("str_to_date", arguments=(Domain.TEXT, Domain.TEXT), result=layout_type, specialise=True)
def str_to_date(arguments: Arguments) -> Callable[[str, str], int | None]:
    kind = layout_type(arguments).kind
    return lambda value, layout: parse(value, layout, kind)


@function("str_to_date with zeros", arguments=(Domain.TEXT, Domain.TEXT), result=layout_type, specialise=True)
def str_to_date_with_zeros(arguments: Arguments) -> Callable[[str, str], int | None]:
    kind = layout_type(arguments).kind
    return lambda value, layout: parse(value, layout, kind, zeros=True)


@function("str_to_date with zero dates", arguments=(Domain.TEXT, Domain.TEXT), result=layout_type, specialise=True)
def str_to_date_with_zero_dates(arguments: Arguments) -> Callable[[str, str], int | None]:
    kind = layout_type(arguments).kind
    return lambda value, layout: parse(value, layout, kind, zero_dates=True)
