"""Rows that come as an Arrow stream: what `dataflow.values.types` has for each of its columns, and the planner's code for its type.

The inverse of `dataflow.values.arrow_values`. A timestamp without a zone is a DATETIME, one with a zone a TIMESTAMP.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.execution.writes.column_values import Array, Column, ColumnValues
from dataflow.errors import Condition, InvalidStatement, Unsupported

_BIGINT_MAX = 0x7FFF_FFFF_FFFF_FFFF
_SECOND = 1_000_000


def read_rows(data: bytes, bytes_max: int) -> tuple[tuple[str, ...], ColumnValues, int]:
    """The codes of the columns of an IPC stream, their values, and how many rows there are."""
    try:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        table.validate(full=True)  # whoever sends it may send anything
    except (pa.ArrowException, MemoryError, OSError) as error:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, f"millrace.load_rows: {error}") from None
    if table.nbytes > bytes_max:
        raise InvalidStatement(Condition.PACKET_TOO_LARGE)
    columns = [column_of(each) for each in table.combine_chunks().columns]
    return tuple(code for code, _ in columns), ColumnValues([values for _, values in columns]), table.num_rows


def column_of(column: pa.ChunkedArray | pa.Array) -> tuple[str, Column]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_dictionary(kind):
        return column_of(array.dictionary_decode())
    if pa.types.is_boolean(kind):
        return column_of(array.cast(pa.int64()))
    if pa.types.is_integer(kind):
        return _integers(array)
    if pa.types.is_floating(kind):
        return "f", array.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return f"d{kind.precision},{max(kind.scale, 0)}", array
    if pa.types.is_date(kind):
        return "date", _with_nulls(_packed_days(array.cast(pa.date32()).cast(pa.int32())), array)
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        wanted = pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")
        numbers = _numbers(array.cast(wanted).cast(pa.int64()))
        return f"time:{_digits(numbers)}", _with_nulls(numbers, array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "s32", array.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "b", array.cast(pa.binary())
    if pa.types.is_null(kind):
        return "n", [None] * len(array)
    raise Unsupported(f"Arrow columns of {kind}")


def _integers(array: pa.Array) -> tuple[str, Column]:
    if pa.types.is_uint64(array.type) and (pc.max(array).as_py() or 0) > _BIGINT_MAX:
        return "u", array.to_pylist()
    numbers = array.cast(pa.int64())
    return "i", numbers if array.null_count else numbers.to_numpy()


def _timestamps(array: pa.Array) -> tuple[str, Column]:
    kind = array.type
    numbers = _numbers(array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()))
    days, rest = np.divmod(numbers, 86_400 * _SECOND)
    seconds, microseconds = np.divmod(rest, _SECOND)
    clock = (seconds // 3_600) << 12 | (seconds // 60 % 60) << 6 | seconds % 60
    packed = _packed(days) | clock << 24 | microseconds
    name = "datetime" if kind.tz is None else "timestamp"
    return f"{name}:{_digits(numbers)}", _with_nulls(packed, array)


def _digits(microseconds: Array) -> int:
    """The fractional digits of a column's values: none, or all six."""
    return 6 if (microseconds % _SECOND).any() else 0


def _numbers(array: pa.Array) -> Array:
    found: Array = pc.fill_null(array, 0).to_numpy().astype(np.int64)
    return found


def _packed_days(array: pa.Array) -> Array:
    return _packed(_numbers(array))


def _packed(days: Array) -> Array:
    """Days since 1970 as `dataflow.values.temporal` packs dates."""
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    number = months.astype(np.int64) + 1970 * 12
    year, month = number // 12, number % 12 + 1
    if len(days) and (year.min() < 1 or year.max() > 9999):
        raise InvalidStatement(Condition.INCORRECT_MOMENT, "date", f"of the year {year.min()} to {year.max()}")
    day = (dates - months.astype("M8[D]")).astype(np.int64) + 1
    packed: Array = ((year * 13 + month) << 5 | day) << 41
    return packed


def _with_nulls(numbers: Array, array: pa.Array) -> Array | pa.Array:
    return pa.array(numbers, mask=array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else numbers
