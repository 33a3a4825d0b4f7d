"""Column definitions: what clients are told about each column of a result.

Type, display length, character set, flags and decimals follow MySQL for every `SqlType`, since
drivers choose their conversions by them: number 63 tells bytes from text, the flags tell a
BLOB from a VARCHAR, a length of 1 tells a boolean from a number.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from mysql_mimic.types import ColumnDefinition, ColumnType

from controller.sql.output import type_flags
from controller.sql.plan import OutputColumn
from dataflow.values.types import BLOBS, INTEGERS, STRINGS, TEXTS, Kind, SqlType
from mysql_adapter.wire.charsets import BINARY_ID, COLLATIONS, DEFAULT_ID, collation_of
from mysql_adapter.wire.packets import counted

FLAG = ColumnDefinition

WIRE_TYPES = {
    Kind.NULL: ColumnType.NULL,
    Kind.TINYINT: ColumnType.TINY,
    Kind.SMALLINT: ColumnType.SHORT,
    Kind.MEDIUMINT: ColumnType.INT24,
    Kind.INT: ColumnType.LONG,
    Kind.BIGINT: ColumnType.LONGLONG,
    Kind.DECIMAL: ColumnType.NEWDECIMAL,
    Kind.FLOAT: ColumnType.FLOAT,
    Kind.DOUBLE: ColumnType.DOUBLE,
    Kind.BIT: ColumnType.BIT,
    Kind.YEAR: ColumnType.YEAR,
    Kind.DATE: ColumnType.DATE,
    Kind.DATETIME: ColumnType.DATETIME,
    Kind.TIMESTAMP: ColumnType.TIMESTAMP,
    Kind.TIME: ColumnType.TIME,
    Kind.CHAR: ColumnType.STRING,
    Kind.VARCHAR: ColumnType.VAR_STRING,
    Kind.TINYTEXT: ColumnType.BLOB,
    Kind.TEXT: ColumnType.BLOB,
    Kind.MEDIUMTEXT: ColumnType.BLOB,
    Kind.LONGTEXT: ColumnType.BLOB,
    Kind.BINARY: ColumnType.STRING,
    Kind.VARBINARY: ColumnType.VAR_STRING,
    Kind.TINYBLOB: ColumnType.BLOB,
    Kind.BLOB: ColumnType.BLOB,
    Kind.MEDIUMBLOB: ColumnType.BLOB,
    Kind.LONGBLOB: ColumnType.BLOB,
    Kind.ENUM: ColumnType.STRING,
    Kind.SET: ColumnType.STRING,
    Kind.JSON: ColumnType.JSON,
}

INTEGER_DIGITS = {
    Kind.TINYINT: (4, 3),
    Kind.SMALLINT: (6, 5),
    Kind.MEDIUMINT: (9, 8),
    Kind.INT: (11, 10),
    Kind.BIGINT: (20, 20),
}
"""Display width of (signed, unsigned)."""

BLOB_BYTES = {
    Kind.TINYBLOB: 255, Kind.BLOB: 65535, Kind.MEDIUMBLOB: 16777215, Kind.LONGBLOB: 4294967295,
    Kind.TINYTEXT: 255, Kind.TEXT: 65535, Kind.MEDIUMTEXT: 16777215, Kind.LONGTEXT: 4294967295,
}  # fmt: skip

LENGTH_MAX = 4294967295
NAME_LENGTH_MAX = 256
NOT_FIXED_DECIMALS = 31


def display_length(type: SqlType, bytes_per_character: int) -> int:
    """MySQL's column length: digits of numbers, characters of times, bytes of strings."""
    kind = type.kind
    if kind in INTEGERS:
        signed, unsigned = INTEGER_DIGITS[kind]
        return type.length or (unsigned if type.unsigned else signed)
    if kind is Kind.DECIMAL:
        return (type.length or 10) + (1 if type.scale else 0) + (0 if type.unsigned else 1)
    if kind is Kind.FLOAT:
        return type.length or 12
    if kind is Kind.DOUBLE:
        return type.length or 22
    if kind is Kind.BIT:
        return type.length or 1
    if kind is Kind.YEAR:
        return 4
    if kind is Kind.DATE:
        return 10
    if kind in (Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME):
        return (10 if kind is Kind.TIME else 19) + (1 + type.scale if type.scale else 0)
    if kind is Kind.JSON:
        return LENGTH_MAX
    if kind is Kind.ENUM:
        return max((len(member) for member in type.members), default=0) * bytes_per_character
    if kind is Kind.SET:
        return (sum(len(member) + 1 for member in type.members) - 1) * bytes_per_character
    if kind in BLOB_BYTES:
        return min(BLOB_BYTES[kind] * (bytes_per_character if kind in TEXTS else 1), LENGTH_MAX)
    if kind in BLOBS:
        return type.length or 0
    return (type.length or 0) * bytes_per_character


def decimals(type: SqlType, computed: bool) -> int:
    if type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return NOT_FIXED_DECIMALS if type.scale < 0 else type.scale
    if type.kind in (Kind.DECIMAL, Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME):
        return type.scale
    return NOT_FIXED_DECIMALS if computed and (type.kind in STRINGS or type.kind in BLOBS) else 0


_TAIL = struct.Struct("<BHIBHBH")


@lru_cache(maxsize=8192)
def column_definition(column: OutputColumn, results_id: int | None) -> bytes:
    """The payload of one column; `results_id` is the results' collation, None to leave text as it is."""
    type = column.type
    is_text = type.kind in STRINGS and type.kind is not Kind.JSON
    if is_text:
        collation = results_id
        if collation is None:
            own = collation_of(type.collation or "")
            collation = own.id if own is not None else DEFAULT_ID
        bytes_per_character = COLLATIONS[collation].charset.bytes_max
    else:
        collation, bytes_per_character = BINARY_ID, 1
    flags = column.flags | type_flags(type)
    if not column.nullable:
        flags |= FLAG.NOT_NULL_FLAG
    if not column.original_table and not is_text:
        flags |= FLAG.BINARY_FLAG
    names = (column.database, column.table, column.original_table, column.name, column.original_name)
    codec = "utf-8" if results_id is None else COLLATIONS[results_id].charset.codec
    errors = "surrogateescape" if codec == "utf-8" else "replace"
    return b"".join(
        (
            b"\x03def",
            *(counted(name[:NAME_LENGTH_MAX].encode(codec, errors)) for name in names),
            _TAIL.pack(
                0x0C,
                collation,
                min(display_length(type, bytes_per_character), LENGTH_MAX),
                WIRE_TYPES[type.kind],
                int(flags) & 0xFFFF,
                decimals(type, not column.original_table),
                0,
            ),
        )
    )
