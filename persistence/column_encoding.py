"""Columns to stored rows, without a Python value for each: the inverse of `persistence.columnar`.

A column becomes, for each row, the bytes that msgpack has for its value; Arrow joins those of a row. A row is decoded to the same values
as one that `RowCodec` has encoded, but its numbers may take more bytes than they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from persistence.byte_lines import SHORT, SHORT_MAX, big_endian, packed

Array = np.ndarray[Any, Any]

_NULL = b"\xc0"
_DOUBLE = 0xCB
_ARRAY = b"\xdc"
LENGTH_MAX = 0xFFFF
"""Of a text or a byte string; longer ones are encoded row by row."""
_NOTHING = pa.scalar(b"", pa.binary())


def encoded_rows(columns: Sequence[pa.Array | Array]) -> list[bytes] | None:
    """The rows of columns of int64 (numpy's or Arrow's), doubles, decimals, texts and byte strings; None if a value is too long."""
    count = len(columns)
    pieces: list[Any] = [pa.scalar(bytes((SHORT + count,)) if count <= SHORT_MAX else _ARRAY + count.to_bytes(2, "big"), pa.binary())]
    for column in columns:
        found = _encoded(column)
        if found is None:
            return None
        pieces += found
    rows: list[bytes] = pc.binary_join_element_wise(*pieces, _NOTHING).to_pylist()
    return rows


def _encoded(column: pa.Array | Array) -> list[pa.Array] | None:
    """What stands in a row for the column, piece by piece."""
    if isinstance(column, np.ndarray):
        return [_lines(packed(column))]
    if pa.types.is_int64(column.type):
        return [_or_null(_lines(packed(column.fill_null(0).to_numpy())), column)]
    if pa.types.is_float64(column.type):
        octets = big_endian(column.fill_null(0).to_numpy(), ">f8")
        marked = np.empty((len(octets), 9), np.uint8)
        marked[:, 0], marked[:, 1:] = _DOUBLE, octets
        return [_or_null(_lines(marked), column)]
    is_text = not pa.types.is_binary(column.type)
    values = (column.cast(pa.string()) if pa.types.is_decimal(column.type) else column).cast(pa.binary())
    lengths = pc.binary_length(values)
    if (pc.max(lengths).as_py() or 0) > LENGTH_MAX:
        return None
    places = pc.add(lengths, 1).fill_null(0)
    return [_heads(is_text).take(places), values.fill_null(b"")]


def _lines(octets: Array) -> pa.Array:
    """Each line of the array as a byte string."""
    count, width = octets.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(octets))])


def _or_null(found: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), found, pa.scalar(_NULL, pa.binary())) if column.null_count else found


@lru_cache(maxsize=2)
def _heads(is_text: bool) -> pa.Array:
    """What msgpack begins NULL with, and then a text or byte string of each length."""
    short = [bytes((0xA0 | length,)) for length in range(32)] if is_text else []
    one, two = (b"\xd9", b"\xda") if is_text else (b"\xc4", b"\xc5")
    middle = [one + bytes((length,)) for length in range(len(short), 256)]
    return pa.array([_NULL, *short, *middle, *(two + length.to_bytes(2, "big") for length in range(256, LENGTH_MAX + 1))], pa.binary())
