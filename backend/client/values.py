"""Python objects of an application, and the values that stand for them here.

Dates and times are `datetime` objects outside (in UTC, without a zone) and packed integers
inside; numbers of numpy are those of Python, and everything else is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from backend.execution.bulk_insert import AT_ONCE_MIN
from backend.execution.column_values import Array
from controller.sql.parameter_types import code_of
from dataflow.temporal import from_datetime, from_timedelta, to_datetime
from dataflow.types import Kind, Row, SqlType, Value

Rows = list[tuple[Any, ...]]
_SAME = frozenset({str, bytes, float, Decimal, type(None)})
_PLAIN = (int, str, float, bytes, Decimal, date, timedelta)


def to_value(given: Any) -> Value:
    """What stands for an application's object; TypeError if it is of no SQL type."""
    if type(given) in _SAME:
        return given  # type: ignore[no-any-return]
    given = plain(given)
    if isinstance(given, date):
        return from_datetime(given)
    if isinstance(given, timedelta):
        return from_timedelta(given)
    if isinstance(given, int):
        return int(given) if -(1 << 63) <= given < 1 << 64 else Decimal(given)
    return given  # type: ignore[no-any-return]


def plain(given: Any) -> Any:
    """An object of one of the types that rows consist of; TypeError if it is none and stands for none."""
    if isinstance(given, np.generic):  # some of them are floats and texts of Python, too
        given = given.astype(f"{given.dtype.kind}8[us]").item() if given.dtype.kind in "mM" else given.item()
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
    if kinds <= _SAME or (kinds == {int} and min(given) >= -(1 << 63) and max(given) < 1 << 64):
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
    return "time:6" if isinstance(given, timedelta) else code_of(given)


def row_converter(types: Sequence[SqlType]) -> Callable[[Sequence[Row]], Rows] | None:
    """Turns rows into an application's; None where they are the same."""
    places = {place: _FROM_VALUE[each.kind] for place, each in enumerate(types) if each.kind in _FROM_VALUE}
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


def _date(packed: int) -> date | None:
    found = to_datetime(packed)
    return None if found is None else found.date()


def _time(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


_FROM_VALUE: dict[Kind, Callable[[int], Any]] = {
    Kind.DATE: _date,
    Kind.DATETIME: to_datetime,
    Kind.TIMESTAMP: to_datetime,
    Kind.TIME: _time,
}
