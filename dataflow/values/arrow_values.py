"""SQL types and values as Arrow has them: what scans by column, Spark and exports read.

| SQL                         | Arrow                                                        |
|-----------------------------|--------------------------------------------------------------|
| integers                    | int8 … int64, unsigned ones uint8 … uint64; YEAR is int16    |
| BIT                         | uint64                                                       |
| DECIMAL                     | decimal128, or decimal256 beyond 38 digits                   |
| FLOAT, DOUBLE               | float, double                                                |
| DATE                        | date32                                                       |
| DATETIME, TIMESTAMP         | timestamp[us], that of TIMESTAMP in UTC                      |
| TIME                        | duration[us], which has all of its 838 hours                 |
| texts, ENUM, SET, JSON      | string                                                       |
| binary strings              | binary                                                       |

Dates that no calendar has ('0000-00-00', '2020-02-00') are NULL there. A field's metadata has the SQL type, see `sql_type_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dataflow.values.types import BLOBS, DATES, INTEGER_BYTES, INTEGERS, STRINGS, Kind, SqlType, Value

Array = np.ndarray[Any, Any]

_DECIMAL128_DIGITS = 38
_INTEGERS = {1: (pa.int8(), pa.uint8()), 2: (pa.int16(), pa.uint16()), 3: (pa.int32(), pa.uint32()), 4: (pa.int32(), pa.uint32()), 8: (pa.int64(), pa.uint64())}
_KIND, _LENGTH, _SCALE, _UNSIGNED = b"kind", b"length", b"scale", b"unsigned"


def arrow_type(kind: SqlType) -> pa.DataType:
    match kind.kind:
        case each if each in INTEGERS:
            return _INTEGERS[INTEGER_BYTES[each]][kind.unsigned]
        case Kind.YEAR:
            return pa.int16()
        case Kind.BIT:
            return pa.uint64()
        case Kind.DECIMAL:
            precision = kind.length or 10
            return pa.decimal128(precision, kind.scale) if precision <= _DECIMAL128_DIGITS else pa.decimal256(precision, kind.scale)
        case Kind.FLOAT:
            return pa.float32()
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.DATE:
            return pa.date32()
        case Kind.DATETIME:
            return pa.timestamp("us")
        case Kind.TIMESTAMP:
            return pa.timestamp("us", "UTC")
        case Kind.TIME:
            return pa.duration("us")
        case each if each in BLOBS:
            return pa.binary()
        case Kind.NULL:
            return pa.null()
    return pa.string()


def arrow_field(name: str, kind: SqlType, nullable: bool) -> pa.Field:
    metadata = {_KIND: kind.kind.value, _LENGTH: str(kind.length or 0), _SCALE: str(kind.scale), _UNSIGNED: str(int(kind.unsigned))}
    # A column that may not be NULL can still hold a date that no calendar has.
    return pa.field(name, arrow_type(kind), nullable or kind.kind in DATES, metadata)


def sql_type_of(field: pa.Field) -> SqlType:
    """The SQL type that `arrow_field` made the field of, without collation and members."""
    found = field.metadata
    length = int(found[_LENGTH])
    return SqlType(Kind(found[_KIND].decode()), length or None, int(found[_SCALE]), found[_UNSIGNED] == b"1")


def arrow_array(values: Sequence[Value], kind: SqlType) -> pa.Array:
    """Values of a column as `dataflow.values.types` has them."""
    if kind.kind in DATES or kind.kind is Kind.TIME:
        return array_of_numbers(np.array([each or 0 for each in values], np.int64), _missing(values), kind)
    if kind.kind in STRINGS:
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:  # half of a surrogate pair is no text anywhere else
            return pa.array([None if each is None else _replaced(each) for each in values], pa.string())
    if kind.kind is Kind.NULL:
        return pa.nulls(len(values))
    return pa.array(values, arrow_type(kind))


def _replaced(value: Value) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _missing(values: Sequence[Value]) -> Array:
    return np.array([each is None for each in values], bool)


def array_of_numbers(numbers: Array, missing: Array, kind: SqlType) -> pa.Array:
    """A column of integers or packed dates, given as int64 (uint64 for BIT and BIGINT UNSIGNED)."""
    if kind.kind is Kind.DATE:
        days, valid = _days(numbers)
        return pa.array(days.astype(np.int32), pa.int32(), mask=missing | ~valid).view(pa.date32())
    if kind.kind in DATES:
        days, valid = _days(numbers)
        rest = numbers >> 24
        seconds = days * 86_400 + (rest >> 12 & 31) * 3_600 + (rest >> 6 & 63) * 60 + (rest & 63)
        microseconds = seconds * 1_000_000 + (numbers & 0xFFFFFF)
        return pa.array(microseconds, pa.int64(), mask=missing | ~valid).view(arrow_type(kind))
    if kind.kind is Kind.TIME:
        return pa.array(numbers, pa.int64(), mask=missing).view(pa.duration("us"))
    wanted = arrow_type(kind)
    return pa.array(numbers.astype(wanted.to_pandas_dtype()), wanted, mask=missing if missing.any() else None)


def _days(packed: Array) -> tuple[Array, Array]:
    """Days since 1970 of packed dates, and which of them a calendar has."""
    months = packed >> 46
    year, month, day = months // 13, months % 13, packed >> 41 & 31
    first = (year - 1970) * 12 + np.maximum(month, 1) - 1
    start = first.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (first + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return start + day - 1, (year > 0) & (month > 0) & (day > 0) & (start + day <= following)
