"""Values as integers, doubles, decimals, or whichever of them MySQL computes with."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dataflow.values import documents, numerals, temporal
from dataflow.values.conversion.texts import decode, text_of
from dataflow.values.types import BIGINT_UNSIGNED, BLOBS, INTEGERS, REALS, Kind, SqlType, Value

Convert = Callable[[Any], Any]


def is_digits(source: SqlType) -> bool:
    """Whether a value is bytes written as digits, 0x41 or b'1': a number where one is wanted.

    Nothing else that is VARBINARY is unsigned.
    """
    return source.kind is Kind.VARBINARY and source.unsigned


def digits_number(value: bytes) -> int:
    """0x41 as a number: its last eight bytes."""
    return int.from_bytes(value[-8:], "big")


def number_type(source: SqlType) -> SqlType:
    """The type of a value of `source` in Domain.NUMBER: an integer, DECIMAL or DOUBLE."""
    if is_digits(source):
        return BIGINT_UNSIGNED
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


def member_index(source: SqlType) -> Convert:
    """ENUM text to its number; the empty text of a failed insert is 0."""
    numbers = {member: position for position, member in enumerate(source.members, 1)}
    return lambda value: numbers.get(value, 0)


def member_bits(source: SqlType) -> Convert:
    """SET text to its number."""
    bits = {member: 1 << position for position, member in enumerate(source.members)}
    return lambda value: sum(bits.get(part, 0) for part in value.split(",")) if value else 0


def to_integer(source: SqlType) -> Convert | None:
    if is_digits(source):
        return digits_number
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
            return lambda value: numerals.round_real(json_number(value))
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


def json_number(text: str) -> float:
    value = documents.loads(text)
    if isinstance(value, str):
        return numerals.read_real(value)
    return float(value) if isinstance(value, int | float) else 0.0


def to_real(source: SqlType) -> Convert | None:
    if is_digits(source):
        return lambda value: float(digits_number(value))
    match source.kind:
        case kind if kind in REALS:
            return None
        case Kind.NULL:
            return lambda value: float(number_of(value))
        case Kind.JSON:
            return json_number
        case kind if kind in BLOBS:
            return lambda value: numerals.read_real(decode(value))
    function = to_number(source)
    if function is None:
        return float
    if number_type(source).kind is Kind.DOUBLE:
        return function
    return lambda value: float(function(value))


def to_decimal(source: SqlType) -> Convert | None:
    if is_digits(source):
        return lambda value: Decimal(digits_number(value))
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
            return lambda value: Decimal(repr(json_number(value)))
    if number_type(source).kind is Kind.DOUBLE:
        return numerals.read_decimal
    function = to_number(source)
    return Decimal if function is None else lambda value: Decimal(function(value))


def _decimal_of(value: Value) -> Decimal:
    if isinstance(value, str | bytes):
        return numerals.read_decimal(text_of(value))
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value or 0)


def to_number(source: SqlType) -> Convert | None:
    if is_digits(source):
        return digits_number
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
            return json_number
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
