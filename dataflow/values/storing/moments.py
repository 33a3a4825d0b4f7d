"""Storing into DATE, DATETIME, TIMESTAMP and TIME."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dataflow.errors import Condition
from dataflow.values import temporal
from dataflow.values.conversion import Domain, conversion, decode
from dataflow.values.modes import Modes
from dataflow.values.storing.report import Report, Target, shown
from dataflow.values.temporal import Flaw
from dataflow.values.types import DATES, Kind, SqlType

_MOMENT = re.compile(r"\s*(?:\d+[^\w\s:]+\d+[^\w\s]+\d+[\sT]+\d|\d{12})")

Store = Callable[[Any, Report], Any]
TIMESTAMP_MIN = temporal.pack(1970, 1, 1, 0, 0, 1)
TIMESTAMP_MAX = temporal.pack(2038, 1, 19, 3, 14, 7, 999_999)


def _read_date(value: Any, modes: Modes) -> tuple[int | None, Flaw]:
    match value:
        case int():
            return temporal.read_number(value, modes)
        case str():
            return temporal.read_datetime(value, modes)
        case bytes():
            return temporal.read_datetime(decode(value), modes)
        case float() | Decimal():
            return temporal.read_decimal(value, modes)
    raise AssertionError(f"no date in {type(value)}")


def _checked(packed: int, modes: Modes) -> tuple[int | None, Flaw]:
    year, month, day = temporal.unpack(packed)[:3]
    flaw = temporal.check_date(year, month, day, packed != 0, modes)
    return (None if flaw else packed), flaw


def date_storer(column: SqlType, source: SqlType, target: Target, modes: Modes) -> Store:
    """DATE, DATETIME and TIMESTAMP; what is no date becomes the zero date."""
    word = "date" if column.kind is Kind.DATE else "datetime"
    is_date, is_timestamp = column.kind is Kind.DATE, column.kind is Kind.TIMESTAMP
    digits = column.scale
    packed = source.kind in DATES
    show = conversion(source, Domain.TEXT).function
    zone = modes.time_zone

    def store(value: Any, report: Report) -> int | None:
        if value is None:
            return None
        if packed:
            found, flaw = _checked(value, modes) if not modes.allow_invalid_dates else (value, Flaw.NONE)
            if found is not None and source.kind is Kind.TIMESTAMP and not is_timestamp:
                found = temporal.from_utc(found, zone)
        elif source.kind is Kind.TIME:
            found, flaw = None, Flaw.TRUNCATED
        else:
            found, flaw = _read_date(value, modes)
        if flaw:
            relaxed = Condition.OUT_OF_RANGE if flaw & (Flaw.ZERO_DATE | Flaw.OUT_OF_RANGE) else Condition.DATA_TRUNCATED
            text = value if show is None else show(value)
            target.object(report, Condition.TRUNCATED_WRONG_VALUE, word, shown(text), relaxed=relaxed)
        if found is None:
            return 0
        if is_date:
            day = temporal.date_part(found)
            if day != found:
                target.note(report)
            return day
        rounded = temporal.round_datetime(found, digits)
        if found and not rounded:
            target.object(report, Condition.TRUNCATED_WRONG_VALUE, word, shown(value if show is None else show(value)), relaxed=Condition.OUT_OF_RANGE)
            rounded = found - (found & 0xFFFFFF) % 10 ** (6 - digits)
        if not is_timestamp or not rounded:
            return rounded
        utc = rounded if source.kind is Kind.TIMESTAMP else temporal.to_utc(rounded, zone)
        if TIMESTAMP_MIN <= utc <= TIMESTAMP_MAX and temporal.to_datetime(utc) is not None:
            return utc
        text = value if show is None else show(value)
        target.object(report, Condition.TRUNCATED_WRONG_VALUE, word, shown(text), relaxed=Condition.OUT_OF_RANGE)
        return 0

    return store


def _read_time(value: Any) -> tuple[int | None, Flaw]:
    match value:
        case int():
            return temporal.read_time_number(value)
        case str():
            return temporal.read_time(value)
        case bytes():
            return temporal.read_time(decode(value))
        case float() | Decimal():
            return temporal.read_time_decimal(value)
    raise AssertionError(f"no time in {type(value)}")


def _has_date(value: Any) -> bool:
    """Whether what is stored as a TIME is written as a moment, whose date is lost."""
    return _MOMENT.match(value) is not None if isinstance(value, str) else isinstance(value, int | float | Decimal) and not -(10**10) < value < 10**10


def time_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    digits = column.scale
    show = conversion(source, Domain.TEXT).function

    def store(value: Any, report: Report) -> int | None:
        if value is None:
            return None
        if source.kind is Kind.TIME:
            return temporal.round_time(value, digits)
        if source.kind in DATES:
            target.note(report)
            return temporal.round_time(temporal.time_part(value), digits)
        found, flaw = _read_time(value)
        if flaw:
            relaxed = Condition.OUT_OF_RANGE if flaw & Flaw.OUT_OF_RANGE else Condition.DATA_TRUNCATED
            text = value if show is None else show(value)
            target.object(report, Condition.TRUNCATED_WRONG_VALUE, "time", shown(text), relaxed=relaxed)
        elif _has_date(value):
            target.note(report)
        return temporal.round_time(found or 0, digits)

    return store
