"""Composite keys as bytes that sort like the values they stand for.

The key of an index is the concatenation of its parts, and comparing keys as bytes gives
MySQL's order: column by column, NULL first, `DESC` columns the other way round.

| values                                | a part's bytes                                          |
|---------------------------------------|---------------------------------------------------------|
| NULL                                  | 00                                                      |
| integers, dates and times, BIT, YEAR  | 01 (negative) or 02, and the number modulo 2⁶⁴          |
| ENUM, SET                             | the same, of the member's position or the members' bits |
| FLOAT, DOUBLE                         | the same, of an integer that sorts like the float       |
| DECIMAL                               | the same, wider, of the number without its point        |
| texts, binary strings, JSON           | 01, collation key with 00 escaped as 00 FF, 00 01       |
| a descending part                     | all of its bytes inverted                               |

No part is a prefix of another of the same column, so keys are unambiguous and a key's leading
parts select a contiguous range. Integers of every width and sign have one encoding: widening
a column leaves its keys as they are. Texts that are equal under their collation
have equal keys, which is what a unique index means; the text itself is in the row.

Each index is compiled once to a Python function (see `KeyEncoding`). Ranges are in
`persistence.key_range`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from dataflow.schema import Index, KeyPart, Table
from dataflow.values.collation import collation_bytes
from dataflow.values.types import (
    BLOBS,
    DEFAULT_COLLATION,
    INTEGERS,
    REALS,
    TEMPORALS,
    TEXTS,
    Kind,
    Row,
    SqlType,
    Value,
)
from persistence.byte_lines import Array, big_endian

NULL = b"\0"
NULL_DESCENDING = b"\xff"
INVERTED = bytes(range(255, -1, -1))
DECIMAL_DIGITS_MAX = 65
_EXACT = Context(prec=2 * DECIMAL_DIGITS_MAX)
_DOUBLE = struct.Struct(">d")
_SIGNED = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """One column of an index; `position` is the column's place in the row.

    Values other than texts and bytes are encoded as integers of `integer_bytes` bytes. For
    numbers these count units of 1 / `units`, and lie strictly between -`limit` and `limit`;
    for everything else `units` is 0.
    """

    position: int
    type: SqlType
    nullable: bool
    prefix: int | None
    descending: bool
    integer_bytes: int = 8
    units: int = 0
    limit: int = 1 << 64

    def encode_integer(self, number: int) -> bytes:
        """The part for the integer that stands for a value; for bounds, also one just outside."""
        width = self.integer_bytes + 1
        code = (2 << 8 * self.integer_bytes) + number
        return ((1 << 8 * width) - 1 - code if self.descending else code).to_bytes(width, "big")


def part_of(table: Table, key_part: KeyPart) -> EncodedPart:
    position = next(at for at, column in enumerate(table.columns) if column.id == key_part.column_id)
    column = table.columns[position]
    kind = column.type.kind
    part = EncodedPart(position, column.type, column.nullable, key_part.prefix, key_part.descending)
    if kind is Kind.DECIMAL:
        limit = int(10 ** (column.type.length or 10))
        width = (limit.bit_length() + 7) // 8
        return replace(part, integer_bytes=width, units=10**column.type.scale, limit=limit)
    return replace(part, units=1) if kind in INTEGERS | TEMPORALS | {Kind.BIT, Kind.YEAR} else part


class KeyEncoding:
    """The compiled encoding of one index of one version of a table."""

    __slots__ = ("_is_plain", "contains_null", "encode", "encode_rows", "parts", "value_encoders")

    def __init__(self, table: Table, index: Index) -> None:
        self.parts = parts = tuple(part_of(table, key_part) for key_part in index.parts)
        self._is_plain = all(part.units == 1 and part.integer_bytes == 8 for part in parts)
        names: dict[str, Any] = {}
        terms = [
            _part_source(part, number, f"row[{part.position}]", names) for number, part in enumerate(parts)
        ]
        key = " + ".join(terms)
        nulls = " or ".join(f"row[{part.position}] is None" for part in parts if part.nullable)
        self.encode: Callable[[Row], bytes] = _compile(f"lambda row: {key}", names)
        self.encode_rows: Callable[[Sequence[Row]], list[bytes]] = _compile(
            f"lambda rows: [{key} for row in rows]", names
        )
        self.contains_null: Callable[[Row], bool] = _compile(f"lambda row: {nulls or False}", names)
        self.value_encoders: tuple[Callable[[Value], bytes], ...] = tuple(
            _compile(
                f"lambda value: {_part_source(replace(part, nullable=True), number, 'value', names)}", names
            )
            for number, part in enumerate(parts)
        )


    def encode_numbers(self, columns: Mapping[int, Array]) -> Array | None:
        """The keys of many rows, a line of bytes each, if all of their columns are here: int64, by position."""
        if not self._is_plain or any(part.position not in columns for part in self.parts):
            return None
        lines = np.empty((len(columns[self.parts[0].position]), 9 * len(self.parts)), np.uint8)
        for start, part in zip(range(0, lines.shape[1], 9), self.parts):
            numbers = columns[part.position]
            line = lines[:, start : start + 9]
            line[:, 0] = 2 if numbers.min() >= 0 else 2 - (numbers < 0)
            line[:, 1:] = big_endian(numbers)
            if part.descending:
                np.invert(line, out=line)
        return lines


def _compile(source: str, names: dict[str, Any]) -> Any:
    return eval(_code(source), names)


@lru_cache(maxsize=4096)
def _code(source: str) -> CodeType:
    """Keys of the same kinds of columns have the same text; only what its names are bound to differs."""
    return compile(source, "<key encoding>", "eval")


def _part_source(part: EncodedPart, number: int, value: str, names: dict[str, Any]) -> str:
    """Python source of the part's bytes, given the source of its value.

    What the source refers to goes into `names`, numbered by the part.
    """
    if not part.nullable:
        return _value_source(part, number, value, names)
    null = NULL_DESCENDING if part.descending else NULL
    return f"({null!r} if (v := {value}) is None else {_value_source(part, number, 'v', names)})"


def _value_source(part: EncodedPart, number: int, value: str, names: dict[str, Any]) -> str:
    text = _bytes_source(part, number, value, names)
    if text is not None:
        source = f"(b'\\x01' + {text}.replace(b'\\0', b'\\0\\xff') + b'\\0\\x01')"
        names["INVERTED"] = INVERTED
        return f"{source}.translate(INVERTED)" if part.descending else source
    integer = _integer_source(part, number, value, names)
    width = part.integer_bytes
    code = 2 << 8 * width
    if part.descending:
        return f"({(1 << 8 * (width + 1)) - 1 - code:#x} - {integer}).to_bytes({width + 1}, 'big')"
    return f"({integer} + {code:#x}).to_bytes({width + 1}, 'big')"


def _bytes_source(part: EncodedPart, number: int, value: str, names: dict[str, Any]) -> str | None:
    kind = part.type.kind
    cut = "" if part.prefix is None else f"[:{part.prefix}]"
    if kind in BLOBS:
        return f"{value}{cut}"
    if kind is Kind.JSON:
        return f"{value}{cut}.encode('utf-8', 'surrogatepass')"
    if kind in TEXTS:
        names[f"collate{number}"] = collation_bytes(part.type.collation or DEFAULT_COLLATION)
        return f"collate{number}({value}{cut})"
    return None


def _integer_source(part: EncodedPart, number: int, value: str, names: dict[str, Any]) -> str:
    kind = part.type.kind
    if kind in REALS:
        names["float_order"] = float_order
        return f"float_order({value})"
    if kind is Kind.DECIMAL:
        names["EXACT"] = _EXACT
        return f"int({value}.scaleb({part.type.scale}, EXACT))"
    if kind is Kind.ENUM:
        names[f"enum{number}"] = {member: place for place, member in enumerate(part.type.members, 1)}.get
        return f"enum{number}({value}, 0)"  # the empty error value is 0 in MySQL too
    if kind is Kind.SET:
        names[f"bits{number}"] = {member: 1 << place for place, member in enumerate(part.type.members)}
        return f"(sum(map(bits{number}.__getitem__, {value}.split(','))) if {value} else 0)"
    return value


def escaped_bytes(part: EncodedPart, text: bytes) -> bytes:
    """The part for a text or binary string that is given as the bytes it compares by."""
    encoded = b"\x01" + text.replace(b"\0", b"\0\xff") + b"\0\x01"
    return encoded.translate(INVERTED) if part.descending else encoded


def float_order(number: float) -> int:
    """An integer within 64 bits that sorts like `number`; -0.0 and 0.0 are the same."""
    bits: int = _SIGNED.unpack(_DOUBLE.pack(number + 0.0))[0]
    return bits if bits >= 0 else -1 - (1 << 63) - bits
