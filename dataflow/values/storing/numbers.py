"""Storing into integers, BIT, YEAR, DECIMAL, FLOAT and DOUBLE."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from dataflow.errors import Condition
from dataflow.values import numerals
from dataflow.values.conversion import Domain, conversion, decode
from dataflow.values.storing.report import Report, Target, shown
from dataflow.values.types import BLOBS, INTEGER_BYTES, INTEGERS, REALS, TEMPORALS, TEXTS, Kind, SqlType

Store = Callable[[Any, Report], Any]
_SPACES = " \t\n\v\f\r"
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_EXPONENT_MAX = 400
FLOAT_MAX = 3.4028234663852886e38


def integer_range(column: SqlType) -> tuple[int, int]:
    if column.kind is Kind.BIT:
        return 0, (1 << (column.length or 1)) - 1
    bits = INTEGER_BYTES[column.kind] * 8
    return (0, (1 << bits) - 1) if column.unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


Complaint = Callable[[], None]


def _read_integer(text: str, target: Target, report: Report) -> tuple[Decimal, Complaint | None]:
    """The number in front of `text`, and what is wrong with the rest unless the number itself is."""
    found = _NUMBER.match(text)
    if found is not None and text[found.end() :].strip(_SPACES):
        return _exact(found[1]), lambda: target.object(report, Condition.DATA_TRUNCATED)
    return _read_text(text, "integer", target, report), None


def _exact(number: str) -> Decimal:
    at = max(number.find("e"), number.find("E"))
    if at < 0:
        return Decimal(number)
    exponent = max(-_EXPONENT_MAX, min(int(number[at + 1 :]), _EXPONENT_MAX))
    return Decimal(number[:at]).scaleb(exponent, numerals.EXACT)


def _read_text(text: str, kind: str, target: Target, report: Report) -> Decimal:
    """The number in front of `text`; complains about what else there is."""
    found = _NUMBER.match(text)
    if found is None:
        if kind == "double":
            target.object(report, Condition.DATA_TRUNCATED)
        else:
            target.object(report, Condition.INCORRECT_VALUE, kind, shown(text))
        return Decimal(0)
    rest = text[found.end() :]
    if rest:
        if rest.strip(_SPACES):
            target.object(report, Condition.DATA_TRUNCATED)
        elif kind != "double":
            target.note(report)
    return _exact(found[1])


def _reader(source: SqlType, kind: str, target: Target) -> Callable[[Any, Report], Any]:
    """Any value as an int, float or Decimal."""
    if source.kind in TEXTS:
        return lambda value, report: _read_text(value, kind, target, report)
    if source.kind in BLOBS:
        return lambda value, report: _read_text(decode(value), kind, target, report)
    if source.kind is Kind.NULL:

        def read(value: Any, report: Report) -> Any:
            if isinstance(value, str | bytes):
                return _read_text(value if isinstance(value, str) else decode(value), kind, target, report)
            return value

        return read
    domain = Domain.INTEGER if kind == "integer" and source.kind in TEMPORALS else Domain.NUMBER
    function = conversion(source, domain).function
    return (lambda value, report: value) if function is None else (lambda value, report: function(value))


def integer_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    low, high = integer_range(column)
    read = _reader(source, "integer", target)
    is_text = source.kind in TEXTS or source.kind in BLOBS or source.kind is Kind.NULL

    def store(value: Any, report: Report) -> int | None:
        if value is None:
            return None
        complaint: Complaint | None = None
        if isinstance(value, str | bytes) and is_text:
            number: Any
            number, complaint = _read_integer(value if isinstance(value, str) else decode(value), target, report)
        else:
            number = read(value, report)
        if type(number) is not int:
            if isinstance(number, Decimal):
                number = int(number.to_integral_value(ROUND_HALF_UP))
            elif math.isfinite(number):
                number = round(number)
            else:
                number = high + 1 if number > 0 else low - 1
        if low <= number <= high:
            if complaint is not None:
                complaint()
            return int(number)
        target.object(report, Condition.OUT_OF_RANGE)
        return high if number > high else low

    return store


def bit_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    _, high = integer_range(column)
    read = _reader(source, "integer", target)
    to_bytes = conversion(source, Domain.BYTES).function
    as_bytes = source.kind in TEXTS or source.kind in BLOBS or source.kind is Kind.NULL or source.kind in TEMPORALS

    def store(value: Any, report: Report) -> int | None:
        if value is None:
            return None
        if as_bytes and (isinstance(value, str | bytes) or source.kind in TEMPORALS):
            number = int.from_bytes(value if to_bytes is None else to_bytes(value), "big")
        else:
            number = read(value, report)
            if isinstance(number, Decimal):
                number = int(number.to_integral_value(ROUND_HALF_UP))
                if number < 0:
                    target.object(report, Condition.OUT_OF_RANGE)
                    return 0
            number = int(number)
            if number < 0:
                number += 1 << 64
        if 0 <= number <= high:
            return number
        target.object(report, Condition.DATA_TOO_LONG, relaxed=Condition.OUT_OF_RANGE)
        return high

    return store


def year_storer(source: SqlType, target: Target) -> Store:
    read = _reader(source, "integer", target)
    from_date = source.kind in (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)

    def store(value: Any, report: Report) -> int | None:
        if value is None:
            return None
        if from_date:
            number: Any = (value >> 46) // 13
        else:
            number = read(value, report)
        if type(number) is not int:
            number = int(number.to_integral_value(ROUND_HALF_UP)) if isinstance(number, Decimal) else math.floor(number)
        if number == 0 and isinstance(value, str) and len(value) != 4 and value.strip(_SPACES)[:1].isdigit():
            return 2000
        if 1 <= number <= 69:
            return int(number) + 2000
        if 70 <= number <= 99:
            return int(number) + 1900
        if number == 0 or 1901 <= number <= 2155:
            return int(number)
        target.object(report, Condition.OUT_OF_RANGE)
        return 0

    return store


def decimal_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    digits, scale = column.length or 10, column.scale
    unit = numerals.quantum(scale)
    largest = numerals.largest_decimal(digits, scale)
    beyond = numerals.EXACT.add(largest, unit)
    smallest = Decimal(0).quantize(unit) if column.unsigned else largest.copy_negate()
    read = _reader(source, "decimal", target)

    def store(value: Any, report: Report) -> Decimal | None:
        if value is None:
            return None
        number = read(value, report)
        if isinstance(number, float):
            number = Decimal(repr(number))
        elif isinstance(number, int):
            number = Decimal(number)
        if number.copy_abs() <= beyond:
            rounded = numerals.settle(number, unit)
            if smallest <= rounded <= largest:
                if rounded != number:
                    target.note(report)
                return rounded
            number = rounded
        target.object(report, Condition.OUT_OF_RANGE)
        return largest if number > 0 else smallest

    return store


def real_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    is_single = column.kind is Kind.FLOAT
    scale = column.scale
    read = _reader(source, "double", target)
    limit = FLOAT_MAX if is_single else numerals.REAL_MAX
    if scale >= 0 and column.length:
        limit = min(limit, float(numerals.largest_decimal(column.length, scale)))

    def store(value: Any, report: Report) -> float | None:
        if value is None:
            return None
        number = float(read(value, report))
        if column.unsigned and number < 0:
            target.object(report, Condition.OUT_OF_RANGE)
            return 0.0
        if scale >= 0 and math.isfinite(number) and abs(number) < 1e22:
            number = round(number, scale)
        if -limit <= number <= limit:
            return numerals.single(number) if is_single else number
        target.object(report, Condition.OUT_OF_RANGE)
        clipped = math.copysign(limit, number)
        return numerals.single(clipped) if is_single else clipped

    return store


def number_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    if column.kind in INTEGERS:
        return integer_storer(column, source, target)
    if column.kind in REALS:
        return real_storer(column, source, target)
    match column.kind:
        case Kind.BIT:
            return bit_storer(column, source, target)
        case Kind.YEAR:
            return year_storer(source, target)
        case _:
            return decimal_storer(column, source, target)
