"""When a comparison of a column with a constant may be answered from an index.

An index orders a column's own values; SQL compares what both sides become after MySQL's
implicit conversions. Where the two agree, the constant becomes a value to look up. Where
they may differ (a text column compared with a number, 'abc' with an integer), there is no value, and
the caller reads every row. Too much care costs time; too little loses rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache

from dataflow.errors import MillraceError
from dataflow.expressions.expression import Column, Expression
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.conversion import Domain, conversion
from dataflow.values.temporal import Flaw, read_datetime, read_time
from dataflow.values.types import BLOBS, DATES, INTEGERS, REALS, TEXTS, Kind, SqlType, Value


class Unusable:
    """The constant turned out to be one that an index cannot be asked for."""


UNUSABLE = Unusable()
Lookup = Callable[[Value], Value | Unusable]

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,10})?\Z")
_CLOCK = re.compile(r"-?[0-9]{1,3}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\Z")
_EXACT_FLOAT_MAX = 2.0**53
_FLOAT_DIGITS = 15
"""Decimals of so many digits are equal as floats only if they are equal."""


def lookup_value(column: Column, constant: Expression, equality: bool) -> Lookup | None:
    """How to make a value of the column's kind from the constant's, or None if it never works."""
    kind = column.type.kind
    if kind in INTEGERS:
        return _exact
    if kind is Kind.DECIMAL:
        return _exact if (column.type.length or 10) <= _FLOAT_DIGITS else _decimal
    if kind is Kind.BIT:
        return _integer
    if kind is Kind.YEAR:
        return _year
    if kind in REALS:
        return _real
    if kind in TEXTS:
        return _text if _same_collation(column, constant) else None
    if kind in BLOBS:
        return _binary(constant.type)
    if kind is Kind.ENUM and equality:
        return _member(column.type) if _same_collation(column, constant) else None
    if kind in DATES:
        return _packed if constant.type.kind in DATES else _date
    if kind is Kind.TIME:
        return _packed if constant.type.kind is Kind.TIME else _time
    return None  # SET and JSON are not compared in the order of their keys


def _same_collation(column: Column, constant: Expression) -> bool:
    if constant.type.kind not in TEXTS and constant.type.kind is not Kind.NULL:
        return False
    try:
        return merged_collation((column, constant), "=") == column.type.collation
    except MillraceError:
        return False


def _exact(value: Value) -> Value | Unusable:
    if value is None or isinstance(value, int | Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(value)) if abs(value) < _EXACT_FLOAT_MAX else UNUSABLE
    if isinstance(value, str) and _NUMBER.match(value):
        return Decimal(value)
    return UNUSABLE


def _decimal(value: Value) -> Value | Unusable:
    return value if value is None or isinstance(value, int | Decimal) else UNUSABLE


def _integer(value: Value) -> Value | Unusable:
    return value if value is None or isinstance(value, int) else UNUSABLE


def _year(value: Value) -> Value | Unusable:
    return value if value is None or (isinstance(value, int) and value >= 1901) else UNUSABLE


def _real(value: Value) -> Value | Unusable:
    if value is None or isinstance(value, float):
        return value
    return float(value) if isinstance(value, int | Decimal) else UNUSABLE


def _text(value: Value) -> Value | Unusable:
    return value if value is None or isinstance(value, str) else UNUSABLE


@cache
def _binary(source: SqlType) -> Lookup:
    """A text is compared as the bytes of its own character set."""
    encoded = conversion(source, Domain.BYTES).function

    def binary(value: Value) -> Value | Unusable:
        if isinstance(value, str) and encoded is not None:
            found: bytes = encoded(value)
            return found
        return value if value is None or isinstance(value, bytes) else UNUSABLE

    return binary


@cache
def _member(type_: SqlType) -> Lookup:
    def member(value: Value) -> Value | Unusable:
        return value if value is None or value in type_.members else UNUSABLE

    return member


def _packed(value: Value) -> Value | Unusable:
    return value if value is None or isinstance(value, int) else UNUSABLE


def _date(value: Value) -> Value | Unusable:
    if value is None:
        return None
    if not isinstance(value, str):
        return UNUSABLE
    packed, flaw = read_datetime(value)
    return UNUSABLE if packed is None or flaw is not Flaw.NONE else packed


def _time(value: Value) -> Value | Unusable:
    if value is None:
        return None
    if not isinstance(value, str) or not _CLOCK.match(value):
        return UNUSABLE
    packed, flaw = read_time(value)
    return UNUSABLE if packed is None or flaw is not Flaw.NONE else packed
