"""Literals with the types MySQL gives them."""

from __future__ import annotations

from decimal import Decimal

from dataflow.expression import Literal
from dataflow.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, Kind, SqlType, Value, decimal, text


def unit(name: str) -> Literal:
    return Literal(name.upper(), text(len(name)))


def binary(value: bytes) -> Literal:
    return Literal(value, SqlType(Kind.VARBINARY, length=len(value)))


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
