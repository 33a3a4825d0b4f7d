"""Values of one type as values of another domain: MySQL's implicit conversions.

A domain is what a function wants to be given; conversions depend on the argument's static
type, so each is chosen once when an expression is compiled. The type NULL stands for "not
known before execution" (a parameter of a prepared statement): its values are converted by
their Python type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from dataflow.values.conversion.domain import Domain
from dataflow.values.conversion.json import json_text, to_document, to_json_value
from dataflow.values.conversion.moments import datetime_of, time_of, to_datetime, to_day, to_time
from dataflow.values.conversion.numbers import (
    digits_number,
    integer_of,
    is_digits,
    member_bits,
    member_index,
    number_of,
    number_type,
    to_decimal,
    to_integer,
    to_number,
    to_real,
)
from dataflow.values.conversion.texts import decode, encode, text_of, to_bytes, to_text
from dataflow.values.types import Kind, SqlType, Value

__all__ = [
    "Conversion",
    "Domain",
    "conversion",
    "convert",
    "datetime_of",
    "decode",
    "digits_number",
    "encode",
    "integer_of",
    "is_digits",
    "json_text",
    "member_bits",
    "member_index",
    "number_of",
    "number_type",
    "text_of",
    "time_of",
]

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
            return Conversion(to_text(source))
        case Domain.BYTES:
            return Conversion(to_bytes(source))
        case Domain.INTEGER:
            return Conversion(to_integer(source))
        case Domain.REAL:
            return Conversion(to_real(source))
        case Domain.DECIMAL:
            return Conversion(to_decimal(source))
        case Domain.NUMBER:
            return Conversion(to_number(source))
        case Domain.DATETIME:
            function = to_datetime(source)
            return Conversion(function, function is not None)
        case Domain.DAY:
            function = to_day(source)
            return Conversion(function, function is not None)
        case Domain.TIME:
            function = to_time(source)
            return Conversion(function, function is not None)
        case Domain.JSON:
            return IDENTITY if source.kind is Kind.JSON else Conversion(to_document)
        case Domain.JSON_VALUE:
            return Conversion(to_json_value(source))


def convert(value: Value, source: SqlType, domain: Domain) -> Any:
    """One value, converted now."""
    function = conversion(source, domain).function
    return value if value is None or function is None else function(value)
