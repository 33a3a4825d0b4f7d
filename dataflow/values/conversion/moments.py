"""Values as dates and times; None where none can be made of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from dataflow.errors import Condition
from dataflow.expressions.notices import say
from dataflow.values import temporal
from dataflow.values.conversion.domain import Domain
from dataflow.values.conversion.json import json_text
from dataflow.values.conversion.texts import decode, text_of
from dataflow.values.numerals import SHOWN_MAX
from dataflow.values.types import BLOBS, DATES, INTEGERS, REALS, STRINGS, Kind, SqlType, Value

Convert = Callable[[Any], Any]


def to_datetime(source: SqlType) -> Convert | None:
    match source.kind:
        case kind if kind in DATES:
            return None
        case kind if kind in INTEGERS:
            return lambda value: _said("datetime", temporal.read_number(value), value)
        case kind if kind in REALS or kind is Kind.DECIMAL:
            return lambda value: _said("datetime", temporal.read_decimal(value), value)
        case Kind.NULL:
            return datetime_of
        case Kind.TIME | Kind.YEAR | Kind.BIT:
            return lambda value: None
        case kind if kind in BLOBS:
            return lambda value: _said("datetime", temporal.read_datetime(decode(value)), decode(value))
        case Kind.JSON:
            return lambda value: _said("datetime", temporal.read_datetime(json_text(value)), json_text(value))
        case _:
            return lambda value: _said("datetime", temporal.read_datetime(value), value)


def to_day(source: SqlType) -> Convert | None:
    function = to_datetime(source)
    if function is None or (source.kind not in STRINGS and source.kind not in BLOBS):
        return function

    def read(value: Any) -> int | None:
        moment: int | None = function(value)
        if moment is None or all(temporal.unpack(moment)[1:3]):
            return moment
        say(Condition.INCORRECT_MOMENT, "datetime", text_of(value)[:SHOWN_MAX])
        return None

    return read


def datetime_of(value: Value) -> int | None:
    match value:
        case None:
            return None
        case int():
            return _said("datetime", temporal.read_number(value), value)
        case float() | Decimal():
            return _said("datetime", temporal.read_decimal(value), value)
        case _:
            return _said("datetime", temporal.read_datetime(text_of(value)), text_of(value))


def to_time(source: SqlType) -> Convert | None:
    match source.kind:
        case Kind.TIME:
            return None
        case Kind.DATE:
            return lambda value: 0
        case Kind.DATETIME | Kind.TIMESTAMP:
            return temporal.time_part
        case kind if kind in INTEGERS:
            return lambda value: _said("time", temporal.read_time_number(value), value)
        case kind if kind in REALS or kind is Kind.DECIMAL:
            return lambda value: _said("time", temporal.read_time_decimal(value), value)
        case Kind.NULL:
            return time_of
        case Kind.YEAR | Kind.BIT:
            return lambda value: _said("time", temporal.read_time_number(value), value)
        case kind if kind in BLOBS:
            return lambda value: _said("time", temporal.read_time(decode(value)), decode(value))
        case _:
            return lambda value: _said("time", temporal.read_time(value), value)


def time_of(value: Value) -> int | None:
    match value:
        case None:
            return None
        case int():
            return _said("time", temporal.read_time_number(value), value)
        case float() | Decimal():
            return _said("time", temporal.read_time_decimal(value), value)
        case _:
            return _said("time", temporal.read_time(text_of(value)), text_of(value))


def _said(kind: str, read: tuple[int | None, temporal.Flaw], value: Value) -> int | None:
    """The moment that was read, with a warning if there is none, or if it is not all that was written."""
    moment, flaw = read
    if moment is None:
        say(Condition.INCORRECT_MOMENT, kind, text_of(value)[:SHOWN_MAX])
    elif flaw:
        say(Condition.TRUNCATED_VALUE, kind, text_of(value)[:SHOWN_MAX])
    return moment


NUMERIC_DOMAINS: dict[Domain, Callable[[Any], Any]] = {
    Domain.INTEGER: round, Domain.REAL: float, Domain.NUMBER: float, Domain.DECIMAL: Decimal
}  # fmt: skip


@cache
def written_moment(domain: Domain) -> Callable[[str], Any]:
    """A date, or a date and time, that was written as a text: as a number of `domain`."""
    made = NUMERIC_DOMAINS[domain]

    def number(value: str) -> Any:
        moment = temporal.read_datetime(value)[0] or 0
        if ":" not in value:
            return made(temporal.date_number(moment))
        return made(temporal.datetime_number(moment, 6 if "." in value else 0))

    return number
