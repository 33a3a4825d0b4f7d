"""Literals with the types MySQL gives them."""

from __future__ import annotations

from decimal import Decimal

from dataflow.expression import Expression, Literal
from dataflow.functions import call
from dataflow.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, Kind, SqlType, Value, decimal, text


def unit(name: str) -> Literal:
    return Literal(name.upper(), text(len(name)))


def binary(value: bytes) -> Literal:
    return Literal(value, SqlType(Kind.VARBINARY, length=len(value)))


def digits(value: bytes) -> Literal:
    """x'…' and b'…'; see `as_number`."""
    return Literal(value, digits_type(len(value)))


def digits_type(length: int | None = None) -> SqlType:
    """The type of bytes written as digits; nothing else that is VARBINARY is unsigned."""
    return SqlType(Kind.VARBINARY, length=length, unsigned=True)


def as_number(expression: Expression) -> Expression:
    """Where a number is wanted: bytes written as digits are one."""
    if expression.type.kind is not Kind.VARBINARY or not expression.type.unsigned:
        return expression
    return call("digits number", expression)


def number(digits: str) -> Literal:
    """A numeric literal with the type MySQL gives it."""
    if digits.isdigit():
        value: Value = int(digits)
        assert isinstance(value, int)
        if value < 1 << 63:
            return Literal(value, BIGINT)
        if value < 1 << 64:
            return Literal(value, BIGINT_UNSIGNED)
        return Literal(Decimal(digits), decimal(len(digits), 0))
    if "e" in digits or "E" in digits:
        return Literal(float(digits), DOUBLE)
    return Literal(Decimal(digits), decimal_type(Decimal(digits)))


def decimal_type(value: Decimal) -> SqlType:
    _, digits, exponent = value.as_tuple()
    scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
    return decimal(max(len(digits), scale, 1), scale)
