"""The conversion of a value that INSERT or UPDATE stores in a column.

    report = Report()
    store = row_storer([(column.type, column.name), …], [source types…], modes)
    row = store(values, report)        # raises InvalidStatement, or adds to report.notices

In strict mode a value that does not fit is refused with MySQL's error; otherwise, or with
`modes.ignoring()`, it is made to fit and noted. A source of type NULL is one that is not
known until execution: its values are taken by their Python type. NULL passes: NOT NULL is
the executor's business. Values that fit already pass an inlined test and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from dataflow.values.modes import DEFAULT_MODES, Modes
from dataflow.values.numerals import largest_decimal
from dataflow.values.storing.arrays import TIMESTAMP_MAX, TIMESTAMP_MIN, days_of_months
from dataflow.values.storing.moments import date_storer, time_storer
from dataflow.values.storing.numbers import Store, integer_range, number_storer
from dataflow.values.storing.report import NOTE, WARNING, Notice, Report, Target
from dataflow.values.storing.texts import (
    BYTES_MAX,
    bytes_storer,
    enum_storer,
    json_storer,
    set_storer,
    text_storer,
)
from dataflow.values.types import (
    BLOBS,
    DATES,
    INTEGERS,
    NUMBERS,
    STRINGS,
    TEMPORALS,
    TEXTS,
    Kind,
    Row,
    SqlType,
    Value,
)

__all__ = ["NOTE", "WARNING", "Notice", "Report", "column_fitness", "column_storer", "row_storer", "store"]

RowStore = Callable[[Sequence[Value], Report], Row]


@lru_cache(maxsize=4096)
def column_storer(column: SqlType, source: SqlType, name: str, modes: Modes = DEFAULT_MODES) -> Store:
    """The function `(value, report) -> stored value` of one column and type of value."""
    target = Target(name, modes.strict)
    if column.kind in NUMBERS:
        return number_storer(column, source, target)
    if column.kind in DATES:
        return date_storer(column, source, target, modes)
    if column.kind in TEXTS:
        return text_storer(column, source, target)
    if column.kind in BLOBS:
        return bytes_storer(column, source, target)
    match column.kind:
        case Kind.TIME:
            return time_storer(column, source, target)
        case Kind.ENUM:
            return enum_storer(column, source, target)
        case Kind.SET:
            return set_storer(column, source, target)
        case Kind.JSON:
            return json_storer(source, target)
    raise AssertionError(f"no column has type {column.kind}")


def store(
    column: SqlType, value: Value, source: SqlType, name: str, report: Report, modes: Modes = DEFAULT_MODES
) -> Value:
    """One value into one column."""
    stored: Value = column_storer(column, source, name, modes)(value, report)
    return stored


def row_storer(
    columns: Sequence[tuple[SqlType, str]], sources: Sequence[SqlType], modes: Modes = DEFAULT_MODES
) -> RowStore:
    """The function `(values, report) -> row` for one value per column."""
    return _row_storer(tuple(columns), tuple(sources), modes)


@lru_cache(maxsize=1024)
def _row_storer(columns: tuple[tuple[SqlType, str], ...], sources: tuple[SqlType, ...], modes: Modes) -> RowStore:
    namespace: dict[str, Any] = {}
    parts = []
    for position, ((column, name), source) in enumerate(zip(columns, sources, strict=True)):
        namespace[f"s{position}"] = column_storer(column, source, name, modes)
        test = _fits(column, source, f"v{position}", namespace)
        slow = f"s{position}(v{position}, report)"
        parts.append(slow if test is None else f"v{position} if {test} else {slow}")
    names = "".join(f"v{position}, " for position in range(len(columns)))
    unpack = f"    {names}= values\n" if columns else ""
    exec(f"def store_row(values, report):\n{unpack}    return ({''.join(part + ', ' for part in parts)})\n", namespace)
    function: RowStore = namespace["store_row"]
    return function


@lru_cache(maxsize=4096)
def column_fitness(column: SqlType, source: SqlType, nullable: bool) -> Callable[[Sequence[Value]], bool] | None:
    """Tells of many values whether all are stored as they are, quickly; None if there is no quick way to tell."""
    namespace: dict[str, Any] = {}
    test = _fits(column, source, "v", namespace)
    if test is None:
        return None
    null = "v is None or " if nullable else ""
    function: Callable[[Sequence[Value]], bool] = eval(f"lambda column: all([{null}({test}) for v in column])", namespace)
    return function


def _integer_limits(column: SqlType, source: SqlType) -> tuple[int, int] | None:
    """Between which integers are stored as they are; None if the column or what it is given is no integer."""
    is_integer = column.kind in INTEGERS and (source.kind in INTEGERS or source.kind is Kind.NULL)
    return integer_range(column) if is_integer else None


def _fits(column: SqlType, source: SqlType, name: str, namespace: dict[str, Any]) -> str | None:
    """A quick Python test that holds only if the value can be stored as it is."""
    known = source.kind is not Kind.NULL
    if column.kind is Kind.DECIMAL and source.kind in (Kind.DECIMAL, Kind.NULL) and not column.unsigned:
        bound = f"m{name}"
        namespace[bound] = largest_decimal(column.length or 10, column.scale)
        namespace[f"n{name}"] = namespace[bound].copy_negate()
        namespace["Decimal"] = Decimal
        return f"type({name}) is Decimal and {name}.same_quantum({bound}) and n{name} <= {name} <= {bound}"
    if column.kind is source.kind and column.kind in TEMPORALS and column.scale >= source.scale:
        if column.kind is Kind.TIME:
            return f"type({name}) is int"
        namespace["days"] = days_of_months()
        within = f" and {TIMESTAMP_MIN} <= {name} <= {TIMESTAMP_MAX}" if column.kind is Kind.TIMESTAMP else ""
        return f"type({name}) is int and 0 < ({name} >> 41 & 31) <= days[{name} >> 46]{within}"
    limits = _integer_limits(column, source)
    if limits is not None:
        return f"type({name}) is int and {limits[0]} <= {name} <= {limits[1]}"
    if column.kind in TEXTS and column.collation != "binary" and (source.kind in STRINGS or not known):
        if column.kind is Kind.VARCHAR:
            return f"type({name}) is str and len({name}) <= {column.length} and {name}.isascii()"
        if column.kind is Kind.CHAR:
            return f"type({name}) is str and len({name}) <= {column.length or 1} and {name}.isascii() and {name}[-1:] != ' '"
        return f"type({name}) is str and len({name}) <= {BYTES_MAX[column.kind]} and {name}.isascii()"
    if column.kind is Kind.DOUBLE and column.scale < 0 and not column.unsigned and (source.kind is Kind.DOUBLE or not known):
        return f"type({name}) is float and {name} - {name} == 0"
    if column.kind in BLOBS and column.kind is not Kind.BINARY and (source.kind in BLOBS or not known):
        limit = BYTES_MAX.get(column.kind) or column.length
        return f"type({name}) is bytes and len({name}) <= {limit}"
    return None
