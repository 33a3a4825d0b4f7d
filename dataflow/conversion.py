"""Values of one type as values of another domain: MySQL's implicit conversions.

A domain is what a function wants to be given; conversions depend on the argument's static
type, so each is chosen once when an expression is compiled. The type NULL stands for "not
known before execution" (a parameter of a prepared statement): its values are converted by
their Python type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any

from dataflow import documents, numerals, temporal
from dataflow.errors import Condition, InvalidStatement
from dataflow.types import BLOBS, DATES, INTEGERS, REALS, Kind, SqlType, Value


class Domain(Enum):
    """What a function wants an argument to be (or None, where it asked to see NULLs)."""

    TEXT = "text"
    """str. Numbers and dates are formatted, bytes are decoded as UTF-8."""
    BYTES = "bytes"
    """bytes. Text is encoded as UTF-8."""
    INTEGER = "integer"
    """int. Decimals are rounded half away from zero, floats half to even; text gives its integer prefix."""
    REAL = "real"
    """float. Text gives its longest numeric prefix, or 0."""
    DECIMAL = "decimal"
    """decimal.Decimal."""
    NUMBER = "number"
    """int, float or Decimal as MySQL computes: text is float, a date is 20200102."""
    DATETIME = "datetime"
    """int, packed as in `dataflow.temporal`; NULL where no date can be made of it."""
    TIME = "time"
    """int, microseconds; NULL where no time can be made of it."""
    JSON = "json"
    """str, normalised JSON text; text is parsed as JSON (3141 where it is not)."""
    JSON_VALUE = "json_value"
    """str, normalised JSON text; an SQL value becomes a JSON value: abc is "abc"."""
    ANY = "any"
    """The value as it is, whatever its type."""


Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Conversion:
    """`function` is None where the value already is what is wanted; `nullable` if it may return None."""

    function: Convert | None
    nullable: bool = False


IDENTITY = Conversion(None)


@cache
def conversion(source: SqlType, domain: Domain) -> Conversion:
    """How a non-NULL value of type `source` becomes one of `domain`."""
    match domain:
        case Domain.ANY:
            return IDENTITY
        case Domain.TEXT:
            return Conversion(_to_text(source))
        case Domain.BYTES:
            return Conversion(_to_bytes(source))
        case Domain.INTEGER:
            return Conversion(_to_integer(source))
        case Domain.REAL:
            return Conversion(_to_real(source))
        case Domain.DECIMAL:
            return Conversion(_to_decimal(source))
        case Domain.NUMBER:
            return Conversion(_to_number(source))
        case Domain.DATETIME:
            function = _to_datetime(source)
            return Conversion(function, function is not None)
        case Domain.TIME:
            function = _to_time(source)
            return Conversion(function, function is not None)
        case Domain.JSON:
            return IDENTITY if source.kind is Kind.JSON else Conversion(_to_document)
        case Domain.JSON_VALUE:
            return Conversion(_to_json_value(source))


def convert(value: Value, source: SqlType, domain: Domain) -> Any:
    """One value, converted now."""
    function = conversion(source, domain).function
    return value if value is None or function is None else function(value)


def number_type(source: SqlType) -> SqlType:
    """The type of a value of `source` in Domain.NUMBER: an integer, DECIMAL or DOUBLE."""
    match source.kind:
        case kind if kind in INTEGERS or kind in REALS or kind is Kind.DECIMAL:
            return source
        case Kind.BIT:
            return SqlType(Kind.BIGINT, length=source.length, unsigned=True)
        case Kind.YEAR:
            return SqlType(Kind.BIGINT, length=4, unsigned=True)
        case Kind.DATE:
            return SqlType(Kind.BIGINT, length=8)
        case Kind.DATETIME | Kind.TIMESTAMP:
            return SqlType(Kind.DECIMAL, 14 + source.scale, source.scale) if source.scale else SqlType(Kind.BIGINT, length=14)
        case Kind.TIME:
            return SqlType(Kind.DECIMAL, 7 + source.scale, source.scale) if source.scale else SqlType(Kind.BIGINT, length=7)
        case Kind.ENUM | Kind.SET:
            return SqlType(Kind.BIGINT, length=20 if source.kind is Kind.SET else 5)
        case Kind.NULL:
            return source
        case _:
            return SqlType(Kind.DOUBLE, scale=-1)


def _to_text(source: SqlType) -> Convert | None:
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
            return f"{{:.{scale}f}}".format if scale >= 0 else numerals.format_float
        case Kind.DOUBLE:
            return f"{{:.{scale}f}}".format if scale >= 0 else numerals.format_double
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


def _to_bytes(source: SqlType) -> Convert | None:
    if source.kind in BLOBS:
        return None
    if source.kind is Kind.NULL:
        return lambda value: value if isinstance(value, bytes) else encode(text_of(value))
    if source.kind is Kind.BIT:
        size = ((source.length or 1) + 7) // 8
        return lambda value: value.to_bytes(size, "big")
    function = _to_text(source)
    return encode if function is None else lambda value: encode(function(value))


def member_index(source: SqlType) -> Convert:
    """ENUM text to its number; the empty text of a failed insert is 0."""
    numbers = {member: position for position, member in enumerate(source.members, 1)}
    return lambda value: numbers.get(value, 0)


def member_bits(source: SqlType) -> Convert:
    """SET text to its number."""
    bits = {member: 1 << position for position, member in enumerate(source.members)}
    return lambda value: sum(bits.get(part, 0) for part in value.split(",")) if value else 0


def _to_integer(source: SqlType) -> Convert | None:
    match source.kind:
        case kind if kind in INTEGERS or kind in (Kind.BIT, Kind.YEAR):
            return None
        case Kind.DECIMAL:
            return numerals.round_decimal
        case kind if kind in REALS:
            return numerals.round_real
        case Kind.DATE:
            return temporal.date_number
        case Kind.DATETIME | Kind.TIMESTAMP:
            return lambda value: temporal.datetime_number(temporal.round_datetime(value, 0))
        case Kind.TIME:
            return lambda value: temporal.time_number(temporal.round_time(value, 0))
        case Kind.ENUM:
            return member_index(source)
        case Kind.SET:
            return member_bits(source)
        case Kind.NULL:
            return integer_of
        case kind if kind in BLOBS:
            return lambda value: numerals.read_integer(decode(value))
        case Kind.JSON:
            return lambda value: numerals.round_real(_json_number(value))
        case _:
            return numerals.read_integer


def integer_of(value: Value) -> int:
    match value:
        case int():
            return value
        case float():
            return numerals.round_real(value)
        case Decimal():
            return numerals.round_decimal(value)
        case _:
            return numerals.read_integer(text_of(value))


def _json_number(text: str) -> float:
    value = documents.loads(text)
    if isinstance(value, str):
        return numerals.read_real(value)
    return float(value) if isinstance(value, int | float) else 0.0


def _to_real(source: SqlType) -> Convert | None:
    match source.kind:
        case kind if kind in REALS:
            return None
        case Kind.NULL:
            return lambda value: float(number_of(value))
        case Kind.JSON:
            return _json_number
        case kind if kind in BLOBS:
            return lambda value: numerals.read_real(decode(value))
    function = _to_number(source)
    if function is None:
        return float
    if number_type(source).kind is Kind.DOUBLE:
        return function
    return lambda value: float(function(value))


def _to_decimal(source: SqlType) -> Convert | None:
    match source.kind:
        case Kind.DECIMAL:
            return None
        case kind if kind in REALS:
            return lambda value: Decimal(repr(value))
        case Kind.NULL:
            return _decimal_of
        case kind if kind in BLOBS:
            return lambda value: numerals.read_decimal(decode(value))
        case Kind.JSON:
            return lambda value: Decimal(repr(_json_number(value)))
    if number_type(source).kind is Kind.DOUBLE:
        return numerals.read_decimal
    function = _to_number(source)
    return Decimal if function is None else lambda value: Decimal(function(value))


def _decimal_of(value: Value) -> Decimal:
    if isinstance(value, str | bytes):
        return numerals.read_decimal(text_of(value))
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value or 0)


def _to_number(source: SqlType) -> Convert | None:
    scale = source.scale
    match source.kind:
        case kind if kind in INTEGERS or kind in REALS or kind in (Kind.DECIMAL, Kind.BIT, Kind.YEAR):
            return None
        case Kind.DATE:
            return temporal.date_number
        case Kind.DATETIME | Kind.TIMESTAMP:
            return (lambda value: temporal.datetime_number(value, scale)) if scale else temporal.datetime_number
        case Kind.TIME:
            return (lambda value: temporal.time_number(value, scale)) if scale else temporal.time_number
        case Kind.ENUM:
            return member_index(source)
        case Kind.SET:
            return member_bits(source)
        case Kind.NULL:
            return number_of
        case Kind.JSON:
            return _json_number
        case kind if kind in BLOBS:
            return lambda value: numerals.read_real(decode(value))
        case _:
            return numerals.read_real


def number_of(value: Value) -> int | float | Decimal:
    match value:
        case int() | float() | Decimal():
            return value
        case _:
            return numerals.read_real(text_of(value))


def _to_datetime(source: SqlType) -> Convert | None:
    match source.kind:
        case kind if kind in DATES:
            return None
        case kind if kind in INTEGERS:
            return lambda value: temporal.read_number(value)[0]
        case kind if kind in REALS or kind is Kind.DECIMAL:
            return lambda value: temporal.read_decimal(value)[0]
        case Kind.NULL:
            return datetime_of
        case Kind.TIME | Kind.YEAR | Kind.BIT:
            return lambda value: None
        case kind if kind in BLOBS:
            return lambda value: temporal.read_datetime(decode(value))[0]
        case Kind.JSON:
            return lambda value: temporal.read_datetime(json_text(value))[0]
        case _:
            return lambda value: temporal.read_datetime(value)[0]


def datetime_of(value: Value) -> int | None:
    match value:
        case None:
            return None
        case int():
            return temporal.read_number(value)[0]
        case float() | Decimal():
            return temporal.read_decimal(value)[0]
        case _:
            return temporal.read_datetime(text_of(value))[0]


def _to_time(source: SqlType) -> Convert | None:
    match source.kind:
        case Kind.TIME:
            return None
        case Kind.DATE:
            return lambda value: 0
        case Kind.DATETIME | Kind.TIMESTAMP:
            return temporal.time_part
        case kind if kind in INTEGERS:
            return lambda value: temporal.read_time_number(value)[0]
        case kind if kind in REALS or kind is Kind.DECIMAL:
            return lambda value: temporal.read_time_decimal(value)[0]
        case Kind.NULL:
            return time_of
        case Kind.YEAR | Kind.BIT:
            return lambda value: temporal.read_time_number(value)[0]
        case kind if kind in BLOBS:
            return lambda value: temporal.read_time(decode(value))[0]
        case _:
            return lambda value: temporal.read_time(value)[0]


def time_of(value: Value) -> int | None:
    match value:
        case None:
            return None
        case int():
            return temporal.read_time_number(value)[0]
        case float() | Decimal():
            return temporal.read_time_decimal(value)[0]
        case _:
            return temporal.read_time(text_of(value))[0]


def json_text(document: str) -> str:
    """The document as plain text: a string loses its quotes."""
    if document[:1] != '"':
        return document
    return str(documents.loads(document))


def _to_document(value: Value) -> str:
    try:
        return documents.normalise(text_of(value))
    except documents.NotJson as error:
        raise InvalidStatement(Condition.INVALID_JSON_ARGUMENT, 1, "json", error.reason, error.position) from None


def _to_json_value(source: SqlType) -> Convert | None:
    match source.kind:
        case Kind.JSON:
            return None
        case kind if kind in INTEGERS or kind in REALS or kind in (Kind.DECIMAL, Kind.YEAR, Kind.NULL):
            return lambda value: documents.dumps(decode(value) if isinstance(value, bytes) else value)
        case Kind.DATETIME | Kind.TIMESTAMP:
            return lambda value: f'"{temporal.format_datetime(value, 6)}"'
        case Kind.TIME:
            return lambda value: f'"{temporal.format_time(value, 6)}"'
    function = _to_text(source)
    if function is None:
        return documents.dumps
    return lambda value: documents.dumps(function(value))
