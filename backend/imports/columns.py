"""The columns of a table of the target, and texts as Arrow columns of their types.

A text that Arrow does not read as a value of the column's type stays a text with its whole column: the target stores it as MySQL
does, or says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from backend.imports.server import rows_of
from controller.sql.text.lexer import quoted

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_DECIMAL128_DIGITS = 38


@dataclass(frozen=True, slots=True)
class ImportedColumn:
    name: str
    kind: str
    precision: int
    scale: int
    is_unsigned: bool
    is_generated: bool

    def arrow(self) -> pa.DataType | None:
        """What Arrow can read the column's texts as; None if they stay texts."""
        if self.kind in _INTEGERS:
            return pa.uint64() if self.is_unsigned else pa.int64()
        match self.kind:
            case "decimal":
                digits = self.precision
                return pa.decimal128(digits, self.scale) if digits <= _DECIMAL128_DIGITS else pa.decimal256(digits, self.scale)
            case "double":
                return pa.float64()
            case "date":
                return pa.date32()
            case "datetime":
                return pa.timestamp("us")
            case "timestamp":
                return pa.timestamp("us", "UTC")
        return None

    def array(self, values: Sequence[str | bytes | None]) -> pa.Array:
        if self.kind == "bit":
            return pa.array([None if each is None else _bits(each) for each in values], pa.uint64())
        if self.kind in _BINARIES or any(isinstance(each, bytes) for each in values):
            return pa.array([each.encode() if isinstance(each, str) else each for each in values], pa.binary())
        return self.typed(pa.array(values, pa.string()))

    def typed(self, texts: pa.Array) -> pa.Array:
        """Texts as values of the column's type, if all of them are such."""
        wanted = self.arrow()
        if self.kind in _BINARIES:
            wanted = pa.binary()
        if wanted is None:
            return texts
        try:
            if self.kind == "timestamp":
                return texts.cast(pa.timestamp("us")).cast(pa.int64()).cast(wanted)
            return texts.cast(wanted)
        except pa.ArrowInvalid:
            return texts


def _bits(value: str | bytes) -> int:
    return int(value) if isinstance(value, str) else int.from_bytes(value, "big")


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """`key` are the positions of the primary key in `columns`, which has none that are generated."""

    database: str
    name: str
    columns: tuple[ImportedColumn, ...]
    key: tuple[int, ...]

    @property
    def qualified(self) -> str:
        return f"{quoted(self.database)}.{quoted(self.name)}"

    def with_columns(self, names: Sequence[str]) -> ImportedTable:
        """The same table, where only some columns are given, in this order."""
        by_name = {each.name.lower(): each for each in self.columns}
        missing = [name for name in names if name.lower() not in by_name]
        if missing:
            raise ValueError(f"table {self.name} has no column {', '.join(missing)}")
        chosen = tuple(by_name[name.lower()] for name in names)
        keys = [self.columns[place].name for place in self.key]
        own = [each.name for each in chosen]
        key = tuple(own.index(name) for name in keys) if all(name in own for name in keys) else ()
        return ImportedTable(self.database, self.name, chosen, key)

    def insert_sql(self, verb: str = "INSERT") -> str:
        names = ", ".join(quoted(each.name) for each in self.columns)
        return f"{verb} INTO {self.qualified} ({names}) VALUES ({', '.join('?' for _ in self.columns)})"

    def batch(self, rows: Sequence[Sequence[str | bytes | None]]) -> pa.RecordBatch:
        arrays = [column.array(values) for column, values in zip(self.columns, zip(*rows))]
        return pa.RecordBatch.from_arrays(arrays, [str(place) for place in range(len(arrays))])

    def key_text(self, batch: pa.RecordBatch, place: int) -> str:
        """The key of a row, for who is told of it; the first columns where the table has none."""
        chosen = self.key or range(min(3, len(self.columns)))
        values = [batch.column(each)[place].as_py() for each in chosen]
        return ", ".join(f"{self.columns[each].name}={value!r}" for each, value in zip(chosen, values))


def describe(connection: Any, database: str, table: str) -> ImportedTable | None:
    """None if there is no such table."""
    sql = """SELECT column_name, data_type, numeric_precision, numeric_scale, column_type, extra, generation_expression
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"""
    columns = []
    for name, kind, precision, scale, declared, extra, generated in rows_of(connection, sql, (database, table)):
        is_generated = bool(generated) or "GENERATED" in str(extra).upper().replace("DEFAULT_GENERATED", "")
        columns.append(
            ImportedColumn(name, str(kind).lower(), int(precision or 0), int(scale or 0), "unsigned" in str(declared).lower(), is_generated)
        )
    if not columns:
        return None
    sql = """SELECT column_name FROM information_schema.statistics
    WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index"""
    keys = [name for (name,) in rows_of(connection, sql, (database, table))]
    given = tuple(each for each in columns if not each.is_generated)
    names = [each.name for each in given]
    return ImportedTable(database, table, given, tuple(names.index(key) for key in keys) if all(key in names for key in keys) else ())
