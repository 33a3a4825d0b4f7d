"""Columns of many keys: what `lookup_columns` gives, the same from shared memory and from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from backend.client.values import Rows
from backend.shared_memory.columns import EntryColumns
from dataflow.values.temporal import time_part, unpack
from dataflow.values.types import BLOBS, DATES, REALS, STRINGS, Kind, SqlType

Array = np.ndarray[Any, Any]
CellChange = Callable[[Any, Array], Any]

_DIGITS_OF_128_BITS, _DIGITS_OF_256_BITS = 38, 76


@dataclass(frozen=True, slots=True)
class Batch:
    """The row of each key that has one, column by column, in the order of the keys.

    `present` says which keys have a row. Numbers, dates and times are numpy arrays (datetime64
    of days or microseconds, timedelta64), texts and decimals Arrow arrays. `nulls` has a mask for
    each column; dates that only MySQL has, such as 0000-00-00, are NaT.
    """

    present: Array
    columns: dict[str, Any]
    nulls: dict[str, Array]

    def __len__(self) -> int:
        return int(np.count_nonzero(self.present))

    def to_arrow(self) -> pa.Table:
        """The same as an Arrow table, without the keys that have no row."""
        arrays = {}
        for name, values in self.columns.items():
            nulls = self.nulls[name]
            if not nulls.any():
                arrays[name] = pa.array(values) if isinstance(values, np.ndarray) else values
            elif isinstance(values, np.ndarray):
                arrays[name] = pa.array(values, mask=nulls)
            else:
                arrays[name] = pa.compute.if_else(pa.array(nulls), None, values)
        return pa.table(arrays)


def batch_of_cells(
    found: EntryColumns, places: Sequence[int], names: Sequence[str], changes: Sequence[CellChange | None]
) -> Batch:
    """From cells of shared memory; `places` say which bit of a row's NULLs is whose."""
    if found.nulls is None:
        none = np.zeros(np.count_nonzero(found.present), bool)
        nulls = dict.fromkeys(names, none)
    else:
        nulls = {name: (found.nulls >> place & 1).astype(bool) for name, place in zip(names, places)}
    columns = dict(zip(names, found.cells))
    for name, change in zip(names, changes):
        if change is not None:
            columns[name] = change(columns[name], nulls[name])
    return Batch(found.present, columns, nulls)


def batch_of_rows(found: Sequence[Rows], names: Sequence[str], types: Sequence[SqlType]) -> Batch:
    """From rows, one key after the other."""
    if any(len(rows) > 1 for rows in found):
        raise ValueError("a key has several rows: use lookup_many")
    rows = [each[0] for each in found if each]
    columns, nulls = {}, {}
    for place, (name, kind) in enumerate(zip(names, types)):
        values = [row[place] for row in rows]
        nulls[name] = np.array([each is None for each in values], bool)
        columns[name] = _of_objects(values, kind)
    return Batch(np.array([bool(each) for each in found], bool), columns, nulls)


def cell_change(column: SqlType) -> CellChange | None:
    """What makes a column of its cells and NULLs; None if they are the same."""
    kind = column.kind
    if kind in DATES:
        unit = "M8[D]" if kind is Kind.DATE else "M8[us]"
        return lambda cells, nulls: _moments(cells, nulls).astype(unit)
    if kind is Kind.TIME:
        return lambda cells, nulls: np.where(nulls, np.timedelta64("NaT", "us"), cells.astype("m8[us]"))
    if kind is Kind.DECIMAL:
        return lambda cells, nulls: _decimals(pa.compute.if_else(pa.array(nulls), None, cells), column)
    return None


def _of_objects(values: list[Any], column: SqlType) -> Any:
    kind = column.kind
    if kind in DATES:
        days = [None if isinstance(each, str) else each for each in values]  # no calendar has them
        return np.array(days, "M8[D]" if kind is Kind.DATE else "M8[us]")
    if kind is Kind.TIME:
        return np.array(values, "m8[us]")
    if kind in BLOBS:
        return pa.array(values, pa.large_binary())
    if kind is Kind.DECIMAL:
        return _decimals(pa.array([None if each is None else str(each) for each in values], pa.large_string()), column)
    if kind in STRINGS or kind is Kind.NULL:
        return pa.array(values, pa.large_string())
    type_ = np.float64 if kind in REALS else np.uint64 if column.unsigned else np.int64
    return np.array([0 if each is None else each for each in values], type_)


def _decimals(texts: Any, column: SqlType) -> Any:
    is_short = (column.length or 0) <= _DIGITS_OF_128_BITS
    type_ = pa.decimal128(_DIGITS_OF_128_BITS, column.scale) if is_short else pa.decimal256(_DIGITS_OF_256_BITS, column.scale)
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:  # more digits than those of the type
        return pa.array([None if each is None else Decimal(each) for each in texts.to_pylist()])


def _moments(packed: Any, nulls: Array) -> Array:
    """Packed dates as datetime64; NaT where the calendar has no such day."""
    year, month, day, *_ = unpack(packed)
    first: Any = ((year - 1970) * 12 + month - 1).astype("M8[M]")  # type: ignore[attr-defined]
    days = first.astype("M8[D]") + (day - 1)
    moments: Array = days.astype("M8[us]") + time_part(packed).astype("m8[us]")  # type: ignore[attr-defined]
    is_day = ~nulls & (year > 0) & (month > 0) & (day > 0) & (days.astype("M8[M]") == first)
    return np.where(is_day, moments, np.datetime64("NaT", "us"))
