"""Dates and times as text in a given layout: DATE_FORMAT, TIME_FORMAT, GET_FORMAT."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.expressions.expression import Call
from dataflow.functions.date_parts import unit_name, week_of
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values.short_cache import kept_if_short
from dataflow.values.temporal import HOUR, MINUTE, SECOND, to_days, unpack
from dataflow.values.temporal.locales import ENGLISH, locales
from dataflow.values.types import text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Parts = tuple[int, int, int, int, int, int, int]
"""(year, month, day, hour, minute, second, microsecond)"""


class NoValue(Exception):
    """The layout asks for a part that this value does not have."""


def _ordinal(day: int) -> str:
    suffix = "th" if 10 <= day <= 19 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def _day_number(parts: Parts) -> int:
    if not parts[1] or not parts[2]:
        raise NoValue
    return to_days(*parts[:3])


def _month(parts: Parts) -> int:
    if not parts[1]:
        raise NoValue
    return parts[1] - 1


def _weekday(parts: Parts) -> int:
    return (_day_number(parts) + 5) % 7


def _names(locale: str) -> dict[str, Callable[[Parts], str]]:
    names = locales()[locale]
    return {
        "a": lambda parts: names.short_days[_weekday(parts)],
        "b": lambda parts: names.short_months[_month(parts)],
        "M": lambda parts: names.months[_month(parts)],
        "W": lambda parts: names.days[_weekday(parts)],
    }


def _week(mode: int) -> Callable[[Parts], tuple[int, int]]:
    return lambda parts: week_of(_day_number(parts), parts[0], mode)


def _half(hour: int) -> str:
    return "AM" if hour % 24 < 12 else "PM"


def _twelve(hour: int) -> int:
    return (hour + 11) % 12 + 1


_ANY: dict[str, Callable[[Parts], str]] = {
    "c": lambda p: str(p[1]),
    "d": lambda p: f"{p[2]:02d}",
    "e": lambda p: str(p[2]),
    "f": lambda p: f"{p[6]:06d}",
    "H": lambda p: f"{p[3]:02d}",
    "h": lambda p: f"{_twelve(p[3]):02d}",
    "I": lambda p: f"{_twelve(p[3]):02d}",
    "i": lambda p: f"{p[4]:02d}",
    "k": lambda p: str(p[3]),
    "l": lambda p: str(_twelve(p[3])),
    "m": lambda p: f"{p[1]:02d}",
    "p": lambda p: _half(p[3]),
    "r": lambda p: f"{_twelve(p[3]):02d}:{p[4]:02d}:{p[5]:02d} {_half(p[3])}",
    "S": lambda p: f"{p[5]:02d}",
    "s": lambda p: f"{p[5]:02d}",
    "T": lambda p: f"{p[3]:02d}:{p[4]:02d}:{p[5]:02d}",
    "Y": lambda p: f"{p[0]:04d}",
    "y": lambda p: f"{p[0] % 100:02d}",
}
_DATE_ONLY: dict[str, Callable[[Parts], str]] = {
    "D": lambda p: _ordinal(p[2]),
    "j": lambda p: f"{_day_number(p) - to_days(p[0], 1, 1) + 1:03d}",
    "U": lambda p: f"{_week(0)(p)[1]:02d}",
    "u": lambda p: f"{_week(1)(p)[1]:02d}",
    "V": lambda p: f"{_week(2)(p)[1]:02d}",
    "v": lambda p: f"{_week(3)(p)[1]:02d}",
    "w": lambda p: str((_day_number(p) + 6) % 7),
    "X": lambda p: f"{_week(2)(p)[0]:04d}",
    "x": lambda p: f"{_week(3)(p)[0]:04d}",
}


@kept_if_short(256)
def _pieces(layout: str, locale: str = ENGLISH) -> tuple[str | Callable[[Parts], str], ...]:
    """Literal texts and what to put between them; an unknown letter stands for itself."""
    pieces: list[str | Callable[[Parts], str]] = []
    for literal, letter in re.findall(r"([^%]+|%\Z)|%(.)", layout, re.DOTALL):
        pieces.append(literal or _ANY.get(letter) or _DATE_ONLY.get(letter) or _names(locale).get(letter) or letter)
    return tuple(pieces)


def _format(parts: Parts, layout: str, locale: str = ENGLISH) -> str | None:
    try:
        return "".join([piece if isinstance(piece, str) else piece(parts) for piece in _pieces(layout, locale)])
    except NoValue:
        return None


def _layout_size(value: int, layout: str, locale: str = ENGLISH) -> int:
    """What the pieces of a layout take while they are put together."""
    return 64 * len(layout)


@function("date_format", arguments=(Domain.DATETIME, Domain.TEXT), result=text(), size=_layout_size)
@function("date_format in", arguments=(Domain.DATETIME, Domain.TEXT, Domain.TEXT), result=text(), size=_layout_size)
def date_format(moment: int, layout: str, locale: str = ENGLISH) -> str | None:
    return _format(unpack(moment), layout, locale) if layout else None


_NO_TIME = re.compile(r"(?:[^%]|%.)*?%[abDjMUuVvWwXx]", re.DOTALL)


@function("time_format", arguments=(Domain.TIME, Domain.TEXT), result=text(), size=_layout_size)
def time_format(value: int, layout: str) -> str | None:
    """The date is zero, so its names and weeks give NULL."""
    if not layout or _NO_TIME.match(layout):
        return None
    size = abs(value)
    parts = (0, 0, 0, size // HOUR, size // MINUTE % 60, size // SECOND % 60, size % SECOND)
    written = _format(parts, layout)
    return f"-{written}" if value < 0 and written is not None else written


_LAYOUTS = {
    "DATE": {"USA": "%m.%d.%Y", "JIS": "%Y-%m-%d", "ISO": "%Y-%m-%d", "EUR": "%d.%m.%Y", "INTERNAL": "%Y%m%d"},
    "DATETIME": {
        "USA": "%Y-%m-%d %H.%i.%s",
        "JIS": "%Y-%m-%d %H:%i:%s",
        "ISO": "%Y-%m-%d %H:%i:%s",
        "EUR": "%Y-%m-%d %H.%i.%s",
        "INTERNAL": "%Y%m%d%H%i%s",
    },
    "TIME": {"USA": "%h:%i:%s %p", "JIS": "%H:%i:%s", "ISO": "%H:%i:%s", "EUR": "%H.%i.%s", "INTERNAL": "%H%i%s"},
}


@special("get_format", least=2, most=2, result=text(17))
def get_format(emitter: Emitter, node: Call) -> Fragment:
    """GET_FORMAT(DATE, 'USA') is the call `get_format('DATE', 'USA')`."""
    layouts = _LAYOUTS["DATETIME" if unit_name(node.arguments[0]) == "TIMESTAMP" else unit_name(node.arguments[0])]
    region = emitter.convert(node.arguments[1], Domain.TEXT)
    return emitter.apply(lambda name: layouts.get(name.upper()), [region], nulls=False)
