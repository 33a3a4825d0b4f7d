"""Whether all values of a column are stored as they are, told of a numpy or Arrow array without a look at each.

What a test does not know for sure it denies: then values are looked at one by one.
"""

from __future__ import annotations

from calendar import isleap
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow.values.storing.numbers import integer_range
from dataflow.values.storing.texts import BYTES_MAX
from dataflow.values.types import BLOBS, INTEGERS, TEMPORALS, TEXTS, Kind, SqlType

Array = np.ndarray[Any, Any]

TIMESTAMP_MIN = ((1970 * 13 + 1) << 5 | 1) << 41 | 1 << 24
TIMESTAMP_MAX = ((2038 * 13 + 1) << 5 | 19) << 41 | (3 << 12 | 14 << 6 | 7) << 24 | 999_999
"""Packed, in UTC."""
_ASCII_END = 0x80


@lru_cache(maxsize=1)
def days_of_months() -> bytes:
    """How many days a month has, by year * 13 + month, as packed dates begin; the year 0 has no leap day here."""
    months = [bytes([0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) for february in (28, 29)]
    return b"".join(months[year > 0 and isleap(year)] for year in range(10_000))


def array_fits(column: SqlType, source: SqlType, nullable: bool, values: pa.Array | Array) -> bool:
    """Of integers and packed moments as int64, and of Arrow's decimals, doubles, texts and byte strings, of type `source`."""
    if isinstance(values, np.ndarray):
        return values.dtype == np.int64 and _numbers_fit(column, source, values)
    if values.null_count and not nullable:
        return False
    kind = values.type
    if pa.types.is_int64(kind):
        return _numbers_fit(column, source, values.drop_null().to_numpy())
    if pa.types.is_decimal128(kind):
        is_same = column.kind is Kind.DECIMAL and not column.unsigned and kind.scale == column.scale
        return is_same and kind.precision <= (column.length or 10)
    if pa.types.is_float64(kind):
        is_plain = column.kind is Kind.DOUBLE and column.scale < 0 and not column.unsigned and source.kind is Kind.DOUBLE
        return is_plain and pc.all(pc.is_finite(values)).as_py() is not False
    if pa.types.is_string(kind):
        return column.kind in TEXTS and column.collation != "binary" and _texts_fit(column, values)
    if pa.types.is_binary(kind):
        limit = BYTES_MAX.get(column.kind) or column.length
        return column.kind in BLOBS and column.kind is not Kind.BINARY and limit is not None and _longest(values) <= limit
    return False


def _numbers_fit(column: SqlType, source: SqlType, numbers: Array) -> bool:
    if not len(numbers):
        return True
    least, most = int(numbers.min()), int(numbers.max())
    if column.kind in INTEGERS and (source.kind in INTEGERS or source.kind is Kind.NULL):
        low, high = integer_range(column)
        return low <= least and most <= high
    if column.kind is not source.kind or column.kind not in TEMPORALS or column.scale < source.scale:
        return False
    if column.kind is Kind.TIME:
        return True
    months = np.frombuffer(days_of_months(), np.uint8)
    if least < 0 or most >> 46 >= len(months):
        return False
    days = numbers >> 41 & 31
    within = column.kind is not Kind.TIMESTAMP or (least >= TIMESTAMP_MIN and most <= TIMESTAMP_MAX)
    return within and bool(((days > 0) & (days <= months[numbers >> 46])).all())


def _texts_fit(column: SqlType, texts: pa.Array) -> bool:
    """ASCII has as many characters as bytes, and is never stored otherwise."""
    limit = (column.length or 1) if column.kind is Kind.CHAR else column.length if column.kind is Kind.VARCHAR else BYTES_MAX[column.kind]
    if limit is None or _longest(texts) > limit:
        return False
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    octets = np.frombuffer(data, np.uint8)[places[0] : places[-1]] if data is not None else np.empty(0, np.uint8)
    if len(octets) and octets.max() >= _ASCII_END:
        return False
    return column.kind is not Kind.CHAR or pc.any(pc.ends_with(texts, " ")).as_py() is not True


def _longest(values: pa.Array) -> int:
    return pc.max(pc.binary_length(values)).as_py() or 0
