"""Stored rows to Arrow by column, without a Python value for each.

The rows of a chunk are read side by side: where each row's next column stands is one number for each row, and all
values of a column are found by the byte that msgpack begins them with. Rows that are not all of one format, or hold
what only `RowCodec` knows how to read, are decoded row by row: the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow.columns.vector import GaveUp, NumberVector, Vector, is_number, vector_of
from dataflow.schema import Table
from dataflow.values.arrow_values import array_of_numbers, arrow_array, arrow_type
from dataflow.values.types import BLOBS, INTEGERS, REALS, STRINGS, Kind, Row, SqlType, Value
from persistence.row_encoding import FORMAT_BYTES, RowCodec

Array = np.ndarray[Any, Any]
_Read = Callable[[SqlType, bytes, Array, Array, Array, Array, Array], Any]
_Convert = Callable[[Sequence[Value], SqlType], Any]

PADDING = bytes(16)
"""Behind the last row, so that no read of a few bytes leaves the buffer."""
_NULL = 0xC0
_LONG_MARKS = {0xD9: 1, 0xC4: 1, 0xDA: 2, 0xC5: 2, 0xDB: 4, 0xC6: 4}
"""Marks of texts and byte strings whose length stands in so many bytes behind them."""
_NUMBER_MARKS = {0xCC: (1, False), 0xCD: (2, False), 0xCE: (4, False), 0xCF: (8, False), 0xD0: (1, True), 0xD1: (2, True), 0xD2: (4, True), 0xD3: (8, True)}
"""Marks of integers: (bytes, signed)."""
_DOUBLE = 0xCB


def _token_bytes() -> Array:
    """How many bytes a value takes with its mark, by its mark; 0 where its length stands behind it, -1 if it is none of ours."""
    found = np.full(256, -1, np.int64)
    found[:0x80] = found[0xE0:] = found[_NULL] = 1
    found[0xA0:0xC0] = np.arange(1, 33)
    for mark, (width, _) in _NUMBER_MARKS.items():
        found[mark] = 1 + width
    found[_DOUBLE] = 9
    for mark in _LONG_MARKS:
        found[mark] = 0
    return found


_TOKEN_BYTES = _token_bytes()


class _Unreadable(Exception):
    """A column has a value that is not read side by side."""


class ColumnDecoder:
    """Decodes some columns of a table, by their positions in `table.columns`."""

    def __init__(self, table: Table, positions: Sequence[int]) -> None:
        self.types = tuple(table.columns[position].type for position in positions)
        self._positions = tuple(positions)
        self._table = table
        self._codec = RowCodec(table)
        self._places = [_places(table, column_ids, positions) for column_ids in table.formats]

    def decode(self, values: Sequence[bytes], prefix_bytes: int) -> list[pa.Array]:
        """The columns of stored rows; so many bytes before each row are passed over."""
        return self._decode(values, prefix_bytes, _column, arrow_array)

    def vectors(self, values: Sequence[bytes], prefix_bytes: int) -> list[Vector]:
        """The same to be computed with."""
        return self._decode(values, prefix_bytes, _vector, vector_of)

    def _decode(self, values: Sequence[bytes], prefix_bytes: int, read: _Read, convert: _Convert) -> list[Any]:
        start, end = prefix_bytes, prefix_bytes + FORMAT_BYTES
        formats = {value[start:end] for value in values}
        if len(formats) == 1:
            number = int.from_bytes(formats.pop(), "big")
            if number < len(self._places):
                try:
                    return self._decode_alike(values, end, self._places[number], read, convert)
                except _Unreadable:
                    pass
        rows = self.rows(values, prefix_bytes)
        return [convert([row[position] for row in rows], kind) for position, kind in zip(self._positions, self.types)]

    def rows(self, values: Sequence[bytes], prefix_bytes: int) -> list[Row]:
        """The same rows whole, one by one."""
        return self._codec.decode_rows([value[prefix_bytes:] for value in values])

    def _decode_alike(
        self, values: Sequence[bytes], skipped: int, places: dict[int, int], read: _Read, convert: _Convert
    ) -> list[Any]:
        count = len(values)
        data = b"".join((*values, PADDING))
        octets = np.frombuffer(data, np.uint8)
        lengths = np.fromiter(map(len, values), np.int64, count)
        at = np.cumsum(lengths) - lengths + skipped
        mark = int(octets[at[0]])
        if not (octets[at] == mark).all():
            raise _Unreadable
        at += 1 if mark & 0xF0 == 0x90 else 3 if mark == 0xDC else 5
        found: dict[int, Any] = {}
        for place in range(max(places.values(), default=-1) + 1):
            wanted = [output for output, each in places.items() if each == place]
            marks = octets[at]
            heads, bodies = _extents(octets, at, marks)
            for output in wanted:
                found[output] = read(self.types[output], data, octets, at, marks, heads, bodies)
            at = at + heads + bodies
        return [found[each] if each in found else convert(self._missing(each, count), self.types[each]) for each in range(len(self.types))]

    def _missing(self, output: int, count: int) -> list[Value]:
        """The column came after the rows were stored."""
        return [self._table.columns[self._positions[output]].missing] * count


def _places(table: Table, column_ids: Sequence[int], positions: Sequence[int]) -> dict[int, int]:
    """Which stored value each output is, for outputs that a format has."""
    at = {column_id: place for place, column_id in enumerate(column_ids)}
    ids = [table.columns[position].id for position in positions]
    return {output: at[each] for output, each in enumerate(ids) if each in at}


def _extents(octets: Array, at: Array, marks: Array) -> tuple[Array, Array]:
    """The bytes of each value's mark and length, and those behind them."""
    sizes = _TOKEN_BYTES[marks]
    least = int(sizes.min())
    if least < 0:
        raise _Unreadable
    heads = np.ones(len(at), np.int64)
    bodies = sizes - 1
    if least == 0:
        for mark, width in _LONG_MARKS.items():
            rows = np.flatnonzero(marks == mark)
            if len(rows):
                heads[rows] = 1 + width
                bodies[rows] = _unsigned(octets, at[rows] + 1, width)
    return heads, bodies


def _unsigned(octets: Array, at: Array, width: int) -> Array:
    """Big-endian numbers of so many bytes; those of 8 wrap around."""
    number = octets[at].astype(np.int64)
    for place in range(1, width):
        number = number << 8 | octets[at + place]
    return number


def _column(kind: SqlType, data: bytes, octets: Array, at: Array, marks: Array, heads: Array, bodies: Array) -> pa.Array:
    missing = marks == _NULL
    if kind.kind in REALS:
        if not ((marks == _DOUBLE) | missing).all():
            raise _Unreadable
        return pa.array(_unsigned(octets, at + 1, 8).view(np.float64), mask=missing).cast(arrow_type(kind))
    if kind.kind in STRINGS or kind.kind in BLOBS or kind.kind is Kind.DECIMAL:
        return _bytes_column(kind, data, at + heads, bodies, missing)
    return array_of_numbers(*_numbers(octets, at, marks, missing, kind), kind)


def _vector(kind: SqlType, data: bytes, octets: Array, at: Array, marks: Array, heads: Array, bodies: Array) -> Vector:
    if not is_number(kind):
        return _column(kind, data, octets, at, marks, heads, bodies)
    if kind.kind is Kind.DECIMAL:
        decimals = _column(kind, data, octets, at, marks, heads, bodies)
        numbers = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals))[::2].copy()
        missing = marks == _NULL
    else:
        numbers, missing = _numbers(octets, at, marks, marks == _NULL, kind)
        if kind.unsigned and kind.kind is Kind.BIGINT and (numbers < 0).any():
            raise GaveUp("a number of more than 63 bits")
    if not missing.any():
        return NumberVector(numbers)
    numbers[missing] = 0
    return NumberVector(numbers, missing)


def _bytes_column(kind: SqlType, data: bytes, starts: Array, lengths: Array, missing: Array) -> pa.Array:
    """Every second piece of the buffer is a value; what lies between two of them is the others."""
    count = len(starts)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2], offsets[1::2], offsets[-1] = starts, starts + lengths, starts[-1] + lengths[-1]
    pieces = pa.BinaryArray.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    places = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=missing if missing.any() else None)
    found = pieces.take(places)
    if kind.kind in BLOBS:
        return found
    texts = found.view(pa.string())
    return pc.cast(texts, arrow_type(kind)) if kind.kind is Kind.DECIMAL else texts


def _numbers(octets: Array, at: Array, marks: Array, missing: Array, kind: SqlType) -> tuple[Array, Array]:
    numbers = marks.astype(np.int64)  # below 0x80 it is the number itself
    numbers[marks >= 0xE0] -= 256
    has_small = marks < 0x80
    seen = int(has_small.sum()) + int((marks >= 0xE0).sum()) + int(missing.sum())
    for mark, (width, signed) in _NUMBER_MARKS.items():
        if seen == len(marks):
            break
        rows = np.flatnonzero(marks == mark)
        if not len(rows):
            continue
        seen += len(rows)
        found = _unsigned(octets, at[rows] + 1, width)
        if signed and width < 8:
            found = found << (64 - 8 * width) >> (64 - 8 * width)
        numbers[rows] = found
    if seen < len(marks) or kind.kind not in _NUMBERS:
        raise _Unreadable
    return numbers, missing


_NUMBERS = INTEGERS | {Kind.BIT, Kind.YEAR, Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME}
