"""Single values on the wire where an expression in generated code would not do."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from dataflow.values import temporal
from dataflow.values.conversion import Domain, convert
from dataflow.values.numerals import format_double, format_float
from dataflow.values.types import TEMPORALS, Kind, SqlType, Value
from mysql_adapter.wire.packets import counted

__all__ = ["binary_cell", "counted", "text_cell", "value_text"]

Cell = Callable[[Any], bytes]

UTC_NAMES = frozenset({"UTC", "SYSTEM", "+00:00", "-00:00"})


def text_cell(type: SqlType, time_zone: str) -> Cell:
    """The text of a value of `type`, always shorter than 251 bytes."""
    match type.kind:
        case Kind.DECIMAL:
            return partial(_decimal, zerofill=(type.length or 10) + bool(type.scale) if type.zerofill else 0)
        case Kind.DOUBLE | Kind.FLOAT:
            if type.zerofill:
                return lambda value: convert(value, type, Domain.TEXT).encode()
            if type.scale >= 0:
                return partial(_fixed, type.scale)
            return _float if type.kind is Kind.FLOAT else _double
        case Kind.DATE:
            return _date
        case Kind.DATETIME:
            return partial(_datetime, type.scale)
        case Kind.TIMESTAMP:
            if time_zone.upper() in UTC_NAMES:
                return partial(_datetime, type.scale)
            return partial(_timestamp, type.scale, time_zone)
        case Kind.TIME:
            return partial(_time, type.scale)
        case kind:
            raise AssertionError(kind)


def value_text(type: SqlType, value: Value, time_zone: str) -> str:
    """Any value but NULL as text, the way it would be sent to a session of that zone."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and type.kind not in TEMPORALS:
        return str(value)
    return text_cell(type, time_zone)(value).decode()


def binary_cell(type: SqlType, time_zone: str) -> Cell:
    if type.kind is Kind.TIME:
        return _binary_time
    if type.kind is Kind.TIMESTAMP and time_zone.upper() not in UTC_NAMES:
        return partial(_binary_timestamp, time_zone)
    return _binary_datetime


def _decimal(value: Decimal, zerofill: int) -> bytes:
    text = format(value, "f")
    return (text.zfill(zerofill) if zerofill else text).encode()


def _fixed(digits: int, value: float) -> bytes:
    return b"%.*f" % (digits, value)


def _double(value: float) -> bytes:
    return format_double(value).encode()


def _float(value: float) -> bytes:
    return format_float(value).encode()


def _date(value: int) -> bytes:
    return temporal.format_date(value).encode()


def _datetime(digits: int, value: int) -> bytes:
    return temporal.format_datetime(value, digits).encode()


def _timestamp(digits: int, time_zone: str, value: int) -> bytes:
    return temporal.format_datetime(temporal.from_utc(value, time_zone), digits).encode()


def _time(digits: int, value: int) -> bytes:
    return temporal.format_time(value, digits).encode()


_DATE = struct.Struct("<BHBB")
_SECONDS = struct.Struct("<BHBBBBB")
_MICROSECONDS = struct.Struct("<BHBBBBBI")


def _binary_datetime(value: int) -> bytes:
    year, month, day, hour, minute, second, microsecond = temporal.unpack(value)
    if microsecond:
        return _MICROSECONDS.pack(11, year, month, day, hour, minute, second, microsecond)
    if hour or minute or second:
        return _SECONDS.pack(7, year, month, day, hour, minute, second)
    return _DATE.pack(4, year, month, day) if value else b"\0"


def _binary_timestamp(time_zone: str, value: int) -> bytes:
    return _binary_datetime(temporal.from_utc(value, time_zone))


_TIME = struct.Struct("<BBIBBB")
_TIME_MICROSECONDS = struct.Struct("<BBIBBBI")


def _binary_time(value: int) -> bytes:
    if not value:
        return b"\0"
    negative = value < 0
    seconds, microseconds = divmod(abs(value), temporal.SECOND)
    days, rest = divmod(seconds, 86400)
    hours, minutes, seconds = rest // 3600, rest // 60 % 60, rest % 60
    if microseconds:
        return _TIME_MICROSECONDS.pack(12, negative, days, hours, minutes, seconds, microseconds)
    return _TIME.pack(8, negative, days, hours, minutes, seconds)
