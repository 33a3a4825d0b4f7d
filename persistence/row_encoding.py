"""Rows as bytes, in a form that ADD and DROP COLUMN leave alone.

A stored row is its format number in 2 bytes, then a msgpack array of the values of the columns
that `Table.formats` lists for that number. A change of columns adds a format; rows of
earlier ones stay as they are and are read through a mapping made once: columns that are gone are
left out, columns that came later have their `Column.missing`.

DECIMALs are stored as their digits. Python texts that no UTF-8 can hold (lone surrogates) are
rare but must not be lost: such a row has the highest bit of its format set, and its texts are
stored as bytes. Decoding checks every value's type, so bytes that are not such a row raise
`CorruptState`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from dataflow.breath import in_parts
from dataflow.errors import CorruptState
from dataflow.schema import Table, TableColumn
from dataflow.values.types import BLOBS, REALS, STRINGS, Kind, Row, Value
from persistence.byte_lines import SHORT, SHORT_MAX, Array, lines, number_places, packed
from persistence.column_encoding import encoded_rows

FORMAT_BYTES = 2
_SURROGATES = 0x8000
_LIST = b"\xdd"

_encode = msgspec.msgpack.Encoder().encode


class LaterFormat(CorruptState):
    """The row was written by a later version of its table than the one that it is read by."""


class RowCodec:
    """The compiled encoding and decoding of one version of a table.

    A table that lacks columns of its last format is one that views see (`backend.views.known_view`): its rows are only decoded.
    """

    __slots__ = ("_column_count", "_decode_list", "_decoders", "_format", "_format_surrogates", "_stored", "encode")

    def __init__(self, table: Table) -> None:
        columns = {column.id: column for column in table.columns}
        positions = {column.id: position for position, column in enumerate(table.columns)}
        assert 0 < len(table.formats) < _SURROGATES
        last = len(table.formats) - 1
        self._format = last.to_bytes(FORMAT_BYTES, "big")
        self._format_surrogates = (last | _SURROGATES).to_bytes(FORMAT_BYTES, "big")
        stored = [positions[column_id] for column_id in table.formats[last] if column_id in positions]
        as_it_is = table.formats[last] == tuple(positions)
        self._stored: Callable[[Row], Row] | None = None if as_it_is else _selection(stored)
        self.encode: Callable[[Row], bytes] = self._encode_plain if as_it_is else self._encode_selected
        self._column_count = len(table.columns)
        self._decode_list = _list_decoder(table.columns) if as_it_is else None
        self._decoders: dict[bytes, Callable[[bytes], Row]] = {}
        for number, column_ids in enumerate(table.formats):
            present = [columns.get(column_id) for column_id in column_ids]
            arrange = _arrangement(table, column_ids)
            for surrogates, mark in ((False, number), (True, number | _SURROGATES)):
                decode = _array_decoder(present, surrogates)
                self._decoders[mark.to_bytes(FORMAT_BYTES, "big")] = (
                    decode if arrange is None else _then(decode, arrange)
                )

    def _encode_plain(self, row: Row) -> bytes:
        try:
            return self._format + _encode(row)
        except UnicodeEncodeError:
            return self._encode_surrogates(row)

    def _encode_selected(self, row: Row) -> bytes:
        assert self._stored is not None
        return self._encode_plain(self._stored(row))

    def _encode_surrogates(self, values: Row) -> bytes:
        return self._format_surrogates + _encode([_as_bytes(value) for value in values])

    def encode_rows(self, rows: Sequence[Row]) -> list[bytes]:
        mark = self._format
        if self._stored is None:
            try:
                return [mark + _encode(row) for row in rows]
            except UnicodeEncodeError:
                pass
        encode = self.encode
        return [encode(row) for row in rows]

    def encode_apart(self, rows: Sequence[Row]) -> tuple[bytes, list[bytes]]:
        """As `encode_rows`, what all begin with apart from the rest."""
        try:
            found: list[bytes] = []
            for part in in_parts(rows):
                found += map(_encode, part if self._stored is None else map(self._stored, part))
            return self._format, found
        except UnicodeEncodeError:
            return b"", self.encode_rows(rows)

    def encode_columns(self, columns: Mapping[int, pa.Array | Array]) -> tuple[bytes, list[bytes]] | None:
        """As `encode_apart`, of all columns by position, as `encoded_rows` takes them; None if they are stored otherwise."""
        if self._stored is not None:
            return None
        numbers = [each for each in columns.values() if isinstance(each, np.ndarray)]
        if len(numbers) == len(columns) <= SHORT_MAX:
            return self._format, lines(bytes((SHORT + len(columns),)), *[packed(columns[n]) for n in range(len(columns))])
        rows = encoded_rows([columns[n] for n in range(len(columns))])
        return None if rows is None else (self._format, rows)

    def decode(self, data: bytes) -> Row:
        try:
            return self._decoders[data[:FORMAT_BYTES]](data[FORMAT_BYTES:])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorruptState(f"row {data[:40].hex()}: {error}") from error
        except KeyError:
            raise LaterFormat(f"row {data[:40].hex()}: unknown format") from None

    def decode_rows(self, rows: Sequence[bytes], start: bytes = b"") -> list[Row]:
        """As `decode`, of many rows; `start` is what all begin with, if that is left out of them."""
        if len(rows) > 1 and self._decode_list is not None:
            if start == self._format:
                bodies = rows
            else:
                is_same = not start and {data[:FORMAT_BYTES] for data in rows} == {self._format}
                bodies = [data[FORMAT_BYTES:] for data in rows] if is_same else ()
            try:
                if bodies:
                    return self._decode_list(b"".join([_LIST + len(rows).to_bytes(4, "big"), *bodies]))
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # find out which row it is
        decode = self.decode
        return [decode(start + data) for data in rows]

    def decode_alike(self, rows: Sequence[bytes], start: bytes, columns: Sequence[int]) -> list[tuple[Row, int]] | None:
        """As `decode_rows`, of neighbours that are alike in these columns only one, and how many they are.

        Only of rows of integers whose columns all stand at the same places, as `encode_columns` makes them.
        """
        if self._decode_list is None or start != self._format or len(set(map(len, rows))) != 1:
            return None
        octets = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        places = number_places(octets, self._column_count)
        if places is None:
            return None
        is_first = np.zeros(len(rows), bool)
        is_first[0] = True
        for column in columns:
            part = octets[:, places[column]]
            words = np.zeros((len(rows), 2), np.int64)  # a number has at most nine bytes
            words.view(np.uint8)[:, : part.shape[1]] = part
            for word in words.T if part.shape[1] > 8 else words.T[:1]:
                is_first[1:] |= word[1:] != word[:-1]
        firsts = is_first.nonzero()[0]
        counts = np.diff(firsts, append=len(rows)).tolist()
        return list(zip(self.decode_rows([rows[each] for each in firsts.tolist()], start), counts))


def _array_decoder(columns: Sequence[TableColumn | None], surrogates: bool) -> Callable[[bytes], Row]:
    """Decodes the array of one format; None stands for a column that is gone."""
    types: list[Any] = [Any if column is None else _stored_type(column, surrogates) for column in columns]
    decode: Callable[[bytes], Row] = msgspec.msgpack.Decoder(tuple[*types]).decode  # type: ignore[valid-type]
    if not surrogates:
        return decode
    texts = [column is not None and column.type.kind in STRINGS for column in columns]
    return _then(decode, lambda row: tuple(_as_text(v) if t else v for v, t in zip(row, texts)))


def _list_decoder(columns: Sequence[TableColumn]) -> Callable[[bytes], list[Row]]:
    """Decodes an array of arrays of the last format."""
    types: list[Any] = [_stored_type(column, False) for column in columns]
    return msgspec.msgpack.Decoder(list[tuple[*types]]).decode  # type: ignore[valid-type]


def _stored_type(column: TableColumn, surrogates: bool) -> Any:
    kind = column.type.kind
    if kind in STRINGS:
        return bytes | None if surrogates else str | None
    if kind in BLOBS:
        return bytes | None
    if kind in REALS:
        return float | None
    return Decimal | None if kind is Kind.DECIMAL else int | None


def _arrangement(table: Table, column_ids: Sequence[int]) -> Callable[[Row], Row] | None:
    """What turns stored values into a row of the table, or None if they are one."""
    if list(column_ids) == [column.id for column in table.columns]:
        return None
    at = {column_id: position for position, column_id in enumerate(column_ids)}
    missing = [column.missing for column in table.columns]
    terms = [
        f"stored[{at[column.id]}]" if column.id in at else f"missing[{position}]"
        for position, column in enumerate(table.columns)
    ]
    return _compile(f"lambda stored: ({', '.join(terms)},)", {"missing": missing})


def _selection(positions: Sequence[int]) -> Callable[[Row], Row]:
    terms = ", ".join(f"row[{position}]" for position in positions)
    return _compile(f"lambda row: ({terms},)", {})


def _compile(source: str, names: dict[str, Any]) -> Callable[[Row], Row]:
    function: Callable[[Row], Row] = eval(source, names)
    return function


def _then(first: Callable[[bytes], Row], second: Callable[[Row], Row]) -> Callable[[bytes], Row]:
    return lambda data: second(first(data))


def _as_bytes(value: Value) -> Value:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _as_text(value: Value) -> Value:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value
