"""Objects of an application as keys of a column.

A key is what the column can have: numbers of any kind for a number, dates and times as objects
or as MySQL's texts. What would only be equal after a conversion of the column (a number asked
of a text) is refused, as the view has no such key. None asks for the rows that have NULL there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from typing import Any

from backend.client.values import plain, to_value
from dataflow.values.key_values import INTEGER_MAX, INTEGER_MIN
from dataflow.values.temporal import Flaw, read_datetime, read_time
from dataflow.values.types import BLOBS, DATES, REALS, STRINGS, Kind, SqlType, Value

KeyConverter = Callable[[Any], Value]
_PLAIN = frozenset({int, str})
"""What most keys are, and what is quick to make sure of."""


@lru_cache(maxsize=1000)
def key_converter(column: SqlType) -> KeyConverter:
    """The function that makes a key of an object; it raises ValueError for what can be none."""
    kind = column.kind
    if kind is Kind.NULL:
        return to_value
    read: Callable[[Any], Value] = _number
    if kind in STRINGS:
        read = _text
    elif kind in BLOBS:
        read = _bytes
    elif kind in DATES:
        read = _date
    elif kind is Kind.TIME:
        read = _time
    elif kind is Kind.DECIMAL:
        read = _decimal
    elif kind in REALS:
        read = _real

    def convert(given: Any) -> Value:
        if given is None:
            return None
        found = read(given if type(given) in _PLAIN else plain(given))
        if found is None:
            raise ValueError(f"{given!r} is no key of a {kind.value} column")
        return found

    return convert


def _text(given: Any) -> Value:
    return given if isinstance(given, str) else None


def _bytes(given: Any) -> Value:
    return given.encode() if isinstance(given, str) else given if isinstance(given, bytes) else None


def _number(given: Any) -> Value:
    if type(given) is int and INTEGER_MIN <= given <= INTEGER_MAX:
        return given
    if isinstance(given, str):
        try:
            return Decimal(given)
        except InvalidOperation:
            return None
    if isinstance(given, int):
        return to_value(given)
    return given if isinstance(given, float | Decimal) else None


def _real(given: Any) -> Value:
    """A DOUBLE is compared as such with numbers of any kind."""
    found = _number(given)
    return None if found is None else float(found)


def _decimal(given: Any) -> Value:
    """A float asks for the decimal that it is written as, since hardly one of them is exact."""
    found = Decimal(repr(given)) if isinstance(given, float) and isfinite(given) else _number(given)
    return Decimal(found) if isinstance(found, int) else found


def _date(given: Any) -> Value:
    if isinstance(given, str):
        packed, flaw = read_datetime(given)
        return packed if flaw is Flaw.NONE else None
    return to_value(given) if isinstance(given, date) else None


def _time(given: Any) -> Value:
    if isinstance(given, str):
        packed, flaw = read_time(given)
        return packed if flaw is Flaw.NONE else None
    return to_value(given) if isinstance(given, timedelta) else None
