"""Python objects of an application, and the values that stand for them here.

Dates and times are `datetime` objects outside (in UTC, without a zone) and packed integers
inside, or MySQL's texts where Python has no such date; numbers of numpy are those of Python, and
everything else is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from math import isfinite
from typing import Any

import numpy as np

from backend.execution.writes.bulk_insert import AT_ONCE_MIN
from backend.execution.writes.column_values import Array
from controller.sql.text.parameter_types import code_of
from dataflow.values.temporal import format_date, format_datetime, from_datetime, from_timedelta, unpack
from dataflow.values.types import Kind, Row, SqlType, Value

Rows = list[tuple[Any, ...]]
DIGITS_MAX = 65
"""Of a DECIMAL."""
_SAME = frozenset({str, bytes, type(None)})
_FINITE: dict[type, Callable[[Any], bool]] = {float: isfinite, Decimal: Decimal.is_finite}
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 64) - 1
_round = Context(prec=DIGITS_MAX).plus
_PLAIN = (int, str, float, bytes, Decimal, date, timedelta)


def to_value(given: Any) -> Value:
    """What stands for an application's object; TypeError if it is of no SQL type, ValueError if SQL has none such."""
    kind = type(given)
    if kind in _SAME or (kind is int and _INTEGER_MIN <= given <= _INTEGER_MAX) or (kind is float and isfinite(given)):
        return given  # type: ignore[no-any-return]
    given = plain(given)
    if isinstance(given, date):
        return from_datetime(given)
    if isinstance(given, timedelta):
        return from_timedelta(given)
    if isinstance(given, int):
        return int(given) if _INTEGER_MIN <= given <= _INTEGER_MAX else _real(Decimal(given))
    return _real(given) if isinstance(given, float | Decimal) else given


def _real(given: float | Decimal) -> float | Decimal:
    """A finite number; what no DECIMAL has enough digits for is a DOUBLE."""
    if not isfinite(given):
        raise ValueError(f"the number {given} is no value of SQL")
    if isinstance(given, float):
        return given
    return _round(given) if given.adjusted() < DIGITS_MAX else float(given)


def plain(given: Any) -> Any:
    """An object of one of the types that rows consist of; TypeError if it is none and stands for none."""
    if isinstance(given, np.generic):  # some of them are floats and texts of Python, too
        if given.dtype.kind in "mM":
            found = given.astype(f"{given.dtype.kind}8[us]").item()
            if isinstance(found, int):
                raise ValueError(f"{given!r} is no date or time of Python's")
            return found
        given = given.item()
    if isinstance(given, datetime) and given.tzinfo is not None:
        return given.astimezone(UTC).replace(tzinfo=None)
    if given is None or isinstance(given, _PLAIN):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if isinstance(given, time):
        return datetime.combine(datetime.min, given.replace(tzinfo=None)) - datetime.min
    raise TypeError(f"{type(given).__name__} is no type of SQL values")


def to_values(given: Sequence[Any]) -> Sequence[Value]:
    """What stands for each of many objects."""
    kinds = set(map(type, given))
    if kinds <= _SAME or (kinds == {int} and min(given) >= _INTEGER_MIN and max(given) <= _INTEGER_MAX):
        return given
    is_finite = _FINITE.get(*kinds) if len(kinds) == 1 else None
    if is_finite is not None and all(map(is_finite, given)):
        return given
    return [to_value(each) for each in given]


def column_values(given: Sequence[Any] | Array) -> Sequence[Value] | Array:
    """What stands for the values of a column; integers without NULL are an array, where that is quicker."""
    if isinstance(given, np.ndarray):
        if given.ndim != 1:
            raise ValueError("a column has one dimension")
        if type(given) is np.ndarray and given.dtype.kind in "biu" and given.dtype != np.uint64:
            return given.astype(np.int64)
        is_time = given.dtype.kind in "mM"
        values: Sequence[Any] = (given.astype(f"{given.dtype.kind}8[us]") if is_time else given).tolist()
        return to_values(values)
    if len(given) >= AT_ONCE_MIN and type(given[0]) is int:
        array = np.array(given)
        if array.dtype == np.int64:
            return array
    return to_values(given)


def column_sample(given: Sequence[Any] | Array) -> date | timedelta | None:
    """One of the dates or times in a column, whose type is that of all; None where values have their own."""
    if isinstance(given, np.ndarray) and given.dtype.kind != "O":
        return datetime.min if given.dtype.kind == "M" else timedelta() if given.dtype.kind == "m" else None
    found = next((each for each in given if each is not None), None)
    if not isinstance(found, date | timedelta):
        return None
    return next((each for each in given if isinstance(each, datetime)), found)


def type_code(given: Any) -> str:
    """The type of a parameter, as the planner wants to know it."""
    given = plain(given)
    if isinstance(given, datetime):
        return "datetime:6"
    if isinstance(given, date):
        return "date"
    if isinstance(given, timedelta):
        return "time:6"
    return code_of(to_value(given) if isinstance(given, int | Decimal) else given)


def row_converter(types: Sequence[SqlType]) -> Callable[[Sequence[Row]], Rows] | None:
    """Turns rows into an application's; None where they are the same."""
    places = {place: function for place, each in enumerate(types) if (function := _from_value(each)) is not None}
    if not places:
        return None

    def convert(rows: Sequence[Row]) -> Rows:
        converted = []
        for row in rows:
            values: list[Any] = list(row)
            for place, function in places.items():
                if values[place] is not None:
                    values[place] = function(values[place])
            converted.append(tuple(values))
        return converted

    return convert


def _from_value(column: SqlType) -> Callable[[int], Any] | None:
    digits = column.scale or 0

    def moment(packed: int) -> datetime | str:
        try:
            return datetime(*unpack(packed))
        except ValueError:
            return format_datetime(packed, digits)

    match column.kind:
        case Kind.DATE:
            return _date
        case Kind.DATETIME | Kind.TIMESTAMP:
            return moment
        case Kind.TIME:
            return _time
    return None


def _date(packed: int) -> date | str:
    try:
        return date(*unpack(packed)[:3])
    except ValueError:
        return format_date(packed)


def _time(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)
