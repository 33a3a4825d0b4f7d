"""MySQL's packets, as far as a load process needs them: statements are encoded, and of answers only the ends are looked for.

Rows stay bytes until a later statement of the page reads a column of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from struct import Struct, error
from typing import Any

from apps.lobsters.pages import Keys

OK, EOF, ERROR = 0x00, 0xFE, 0xFF
_HEADER = Struct("<I")
_LONGLONG, _DATETIME, _VAR_STRING, _NEWDECIMAL, _NULL = 8, 12, 253, 246, 6
_DATETIME_VALUE = Struct("<BHBBBBB")
_FIXED = {1: "b", 2: "h", 3: "i", 4: "f", 5: "d", 8: "q", 9: "i", 13: "h"}
"""Types of fixed length, with their codes of struct; those of unsigned numbers are capital."""
_UNSIGNED = 0x20
_DATES = (7, 10, 11, _DATETIME)


class ServerError(Exception):
    """An error that the server answered."""


def command(text: str) -> bytes:
    """A statement as text."""
    sql = text.encode()
    return _HEADER.pack(len(sql) + 1) + b"\x03" + sql


def preparation(sql: str) -> bytes:
    text = sql.encode()
    return _HEADER.pack(len(text) + 1) + b"\x16" + text


@cache
def _integers(count: int) -> Struct:
    return Struct(f"<IBIBI{(count + 7) // 8}sB{2 * count}s{count}q")


def execution(statement_id: int, values: Sequence[Any]) -> bytes:
    """A prepared statement with its values, in the binary protocol."""
    count = len(values)
    packed = _integers(count)
    try:
        return packed.pack(packed.size - 4, 0x17, statement_id, 0, 1, b"", 1, b"\x08\x00" * count, *values)
    except error:  # they are not all integers
        pass
    nulls, types, given = bytearray((count + 7) // 8), bytearray(), bytearray()
    for number, value in enumerate(values):
        kind, encoded = _value(value)
        types += bytes((kind, 0))
        given += encoded
        if value is None:
            nulls[number >> 3] |= 1 << (number & 7)
    head = Struct("<BIBI").pack(0x17, statement_id, 0, 1)
    body = b"".join((head, nulls, b"\x01", types, given))
    return _HEADER.pack(len(body)) + body


def _value(value: Any) -> tuple[int, bytes]:
    match value:
        case int():
            return _LONGLONG, value.to_bytes(8, "little", signed=True)
        case datetime():
            parts = (value.year, value.month, value.day, value.hour, value.minute, value.second)
            return _DATETIME, _DATETIME_VALUE.pack(7, *parts)
        case str() | Decimal():
            text = str(value).encode()
            length = bytes((len(text),)) if len(text) < 251 else b"\xfc" + len(text).to_bytes(2, "little")
            return _VAR_STRING if isinstance(value, str) else _NEWDECIMAL, length + text
        case None:
            return _NULL, b""
    raise TypeError(value)


def packet_end(data: bytes, at: int) -> int:
    """Where the packet that begins at `at` ends; beyond the data if that is not all of it."""
    header = data[at : at + 3]
    return at + 4 + int.from_bytes(header, "little") if len(header) == 3 else at + 4


def number(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded number and where it ends; NULL is -1."""
    first = data[at]
    if first < 251:
        return first, at + 1
    if first == 251:
        return -1, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


class Columns:
    """What an answer says of its columns, before its rows: as many packets, the same each time."""

    def __init__(self, data: bytes) -> None:
        self.packets = data
        self.names: dict[str, int] = {}
        self.types: list[int] = []
        self.fixed: list[Struct | None] = []
        at = packet_end(data, 0)
        while at < len(data) and data[at + 4] != EOF:
            end = packet_end(data, at)
            at += 4
            for part in range(6):  # catalog, database, table, original table, name, original name
                length, at = number(data, at)
                if part == 4:
                    self.names[data[at : at + length].decode()] = len(self.types)
                at += length
            code = _FIXED.get(data[at + 7])
            if code is not None and code in "bhiq" and data[at + 8] & _UNSIGNED:
                code = code.upper()
            self.types.append(data[at + 7])
            self.fixed.append(None if code is None else Struct(f"<{code}"))
            at = end


class PacketAnswer:
    """The rows of an answer as they came: `starts` are where they begin, without the packets' headers."""

    __slots__ = ("_columns", "_data", "_is_binary", "_keys", "_starts", "insert_id")

    def __init__(self, columns: Columns | None, data: bytes, starts: list[int], is_binary: bool, insert_id: int = 0) -> None:
        self._columns, self._data, self._starts, self._is_binary = columns, data, starts, is_binary
        self._keys: dict[str, Keys] = {}
        self.insert_id = insert_id

    @property
    def row_count(self) -> int:
        return len(self._starts)

    def first(self, column: str) -> Any:
        return self._read(self._starts[0], column)

    def values(self, column: str) -> list[Any]:
        read = self._read
        return [read(start, column) for start in self._starts]

    def keys(self, column: str) -> Keys:
        found = self._keys.get(column)
        if found is None:
            found = self._keys[column] = Keys(self.values(column))
        return found

    def _read(self, at: int, column: str) -> Any:
        assert self._columns is not None
        place = self._columns.names[column]
        return (self._binary if self._is_binary else self._text)(at, place)

    def _text(self, at: int, place: int) -> bytes | None:
        data = self._data
        for _ in range(place):
            length, at = number(data, at)
            at += max(length, 0)
        length, at = number(data, at)
        return None if length < 0 else data[at : at + length]

    def _binary(self, start: int, place: int) -> Any:
        """Of a number its value; of anything else that is sent as text its bytes."""
        assert self._columns is not None
        data, types = self._data, self._columns.types
        nulls = start + 1
        at = nulls + (len(types) + 9) // 8
        for column, fixed in enumerate(self._columns.fixed):
            is_null = data[nulls + ((column + 2) >> 3)] >> ((column + 2) & 7) & 1
            if is_null:
                if column == place:
                    return None
            elif fixed is not None:
                if column == place:
                    return fixed.unpack_from(data, at)[0]
                at += fixed.size
            elif types[column] in _DATES:
                at += 1 + data[at]
            else:
                length, at = number(data, at)
                if column == place:
                    return data[at : at + length]
                at += length
        raise AssertionError("the row has no such column")
