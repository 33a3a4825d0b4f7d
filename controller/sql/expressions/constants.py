"""Literals with the types MySQL gives them."""

from __future__ import annotations

import re
from decimal import Decimal

from controller.sql.definitions.column_types import default_collation
from controller.sql.text.lexer import introduced_value, written_double
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression, Literal
from dataflow.functions import call
from dataflow.values.conversion import is_digits
from dataflow.values.modes import Modes
from dataflow.values.numerals import written_decimal
from dataflow.values.temporal import read_datetime, read_time
from dataflow.values.types import (
    BIGINT,
    BIGINT_UNSIGNED,
    DOUBLE,
    NUMBERS,
    Kind,
    SqlType,
    Value,
    decimal,
    text,
)


def unit(name: str) -> Literal:
    name = name.upper().removeprefix("SQL_TSI_")
    return Literal(name, text(len(name)))


def binary(value: bytes) -> Literal:
    return Literal(value, SqlType(Kind.VARBINARY, length=len(value)))


def introduced(value: str | bytes, charset: str, client_codec: str) -> Literal:
    """_charset'…' and _charset 0x…"""
    found = introduced_value(value, charset, client_codec)
    if isinstance(found, bytes):
        return binary(found)
    return Literal(found, text(len(found), default_collation(charset)))


_WHOLE_MOMENT = re.compile(r"\s*(?:\d+[^\w\s]+\d+[^\w\s]+\d+[\sT]+\d|\d{12})")
_DATE_ALONE = re.compile(r"\s*(?:\d+[^\w\s]+\d+[^\w\s]+\d+|\d{8}|\d{6})\s*")


def check_moment(kind: str, written: str, sql_mode: frozenset[str]) -> None:
    """DATE '…', TIME '…' and TIMESTAMP '…' are what they say, and all of it (error 1525)."""
    modes = Modes.parse(",".join(sql_mode))
    date_alone = _DATE_ALONE.fullmatch(written) is not None
    moment, flaw = read_datetime(written, modes)
    if kind == "TIME":
        value, flaw = (None, flaw) if _WHOLE_MOMENT.match(written) else read_time(written)
    else:
        value = moment if date_alone == (kind == "DATE") else None
    if value is None or flaw:
        raise InvalidStatement(Condition.WRONG_MOMENT_LITERAL, kind, written)


def digits(value: bytes) -> Literal:
    """x'…' and b'…'; see `as_number`."""
    return Literal(value, digits_type(len(value)))


def digits_type(length: int | None = None) -> SqlType:
    """The type of bytes written as digits: see `dataflow.values.conversion.is_digits`."""
    return SqlType(Kind.VARBINARY, length=length, unsigned=True)


def as_number(expression: Expression) -> Expression:
    """Where a number is wanted: bytes written as digits are one."""
    return call("digits number", expression) if is_digits(expression.type) else expression


def as_stored(expression: Expression, type_: SqlType) -> Expression:
    """What a column of `type_` gets: bytes written as digits are a number for numbers, too large if there are more than eight."""
    return call("stored digits", expression) if type_.kind in NUMBERS and is_digits(expression.type) else expression


def number(digits: str) -> Literal:
    """A numeric literal with the type MySQL gives it."""
    if digits.isdigit():
        value: Value = int(digits)
        assert isinstance(value, int)
        if value < 1 << 63:
            return Literal(value, BIGINT)
        if value < 1 << 64:
            return Literal(value, BIGINT_UNSIGNED)
        large = written_decimal(digits)
        return Literal(large, decimal_type(large))
    if "e" in digits or "E" in digits:
        return Literal(written_double(digits), DOUBLE)
    exact = written_decimal(digits)
    return Literal(exact, decimal_type(exact))


def decimal_type(value: Decimal) -> SqlType:
    _, digits, exponent = value.as_tuple()
    scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
    return decimal(max(len(digits), scale, 1), scale)
