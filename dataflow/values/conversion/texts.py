"""Values as text and as bytes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from dataflow.values import numerals, temporal
from dataflow.values.collation.names import charset_of
from dataflow.values.types import BLOBS, INTEGERS, STRINGS, Kind, SqlType, Value

Convert = Callable[[Any], Any]


def to_text(source: SqlType) -> Convert | None:
    scale = source.scale
    match source.kind:
        case kind if kind in INTEGERS:
            if source.zerofill and source.length:
                return f"{{:0{source.length}d}}".format
            return str
        case Kind.YEAR:
            return "{:04d}".format
        case Kind.DECIMAL:
            if source.zerofill and source.length:
                width = source.length + (1 if scale else 0)
                return lambda value: f"{value:f}".zfill(width)
            return numerals.format_decimal
        case Kind.FLOAT:
            return _padded(source, 12, f"{{:.{scale}f}}".format if scale >= 0 else numerals.format_float)
        case Kind.DOUBLE:
            return _padded(source, 22, f"{{:.{scale}f}}".format if scale >= 0 else numerals.format_double)
        case Kind.BIT:
            size = ((source.length or 1) + 7) // 8
            return lambda value: value.to_bytes(size, "big").decode("utf-8", "surrogateescape")
        case Kind.DATE:
            return temporal.format_date
        case Kind.DATETIME | Kind.TIMESTAMP:
            return (lambda value: temporal.format_datetime(value, scale)) if scale else temporal.format_datetime
        case Kind.TIME:
            return (lambda value: temporal.format_time(value, scale)) if scale else temporal.format_time
        case kind if kind in BLOBS:
            return decode
        case Kind.NULL:
            return text_of
        case _:
            return None


def _padded(source: SqlType, width: int, function: Callable[[Any], str]) -> Convert:
    """ZEROFILL: as many zeros before a number as it takes."""
    digits = source.length or width
    return (lambda value: function(value).zfill(digits)) if source.zerofill else function


def decode(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def encode(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def text_of(value: Value) -> str:
    """The text of a value of unknown type."""
    match value:
        case str():
            return value
        case bytes():
            return decode(value)
        case float():
            return numerals.format_double(value)
        case Decimal():
            return numerals.format_decimal(value)
        case _:
            return str(value)


def to_bytes(source: SqlType) -> Convert | None:
    if source.kind in BLOBS:
        return None
    if source.kind is Kind.NULL:
        return lambda value: value if isinstance(value, bytes) else encode(text_of(value))
    if source.kind is Kind.BIT:
        size = ((source.length or 1) + 7) // 8
        return lambda value: value.to_bytes(size, "big")
    function = to_text(source)
    if source.kind in STRINGS:
        return encoder(source.collation)
    return encode if function is None else lambda value: encode(function(value))


@cache
def encoder(collation: str | None) -> Callable[[str], bytes]:
    """Texts as the bytes of their character set; what it lacks is a question mark."""
    charset = charset_of(collation)
    return encode if charset.is_utf8 else lambda value: value.encode(charset.codec, "replace")
