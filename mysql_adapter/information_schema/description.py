"""Columns and keys in words: what SHOW COLUMNS, SHOW INDEX and information_schema all say."""

from __future__ import annotations

from dataclasses import dataclass

from controller.sql.definitions import show_create
from controller.sql.output import column_flags
from controller.sql.plan import OutputColumn
from dataflow import schema
from dataflow.schema import Index, Table, has_row_id
from dataflow.values.types import BLOBS, INTEGER_BYTES, STRINGS, Kind, SqlType
from mysql_adapter.wire.charsets import collation_of
from mysql_adapter.wire.columns import BLOB_BYTES


def default_text(column: schema.TableColumn, time_zone: str) -> str | None:
    """COLUMN_DEFAULT: None for no default and for DEFAULT NULL."""
    if column.default_now:
        return f"CURRENT_TIMESTAMP({column.type.scale})" if column.type.scale else "CURRENT_TIMESTAMP"
    if column.default_expression is not None:
        return column.default_sql
    if not column.has_default or column.default is None:
        return None
    return show_create.default_text(column.type, column.default, time_zone)


def extra_text(column: schema.TableColumn) -> str:
    words: list[str] = []
    if column.auto_increment:
        words.append("auto_increment")
    if column.default_now or column.default_expression is not None:
        words.append("DEFAULT_GENERATED")
    if column.on_update_now:
        scale = column.type.scale
        words.append(f"on update CURRENT_TIMESTAMP({scale})" if scale else "on update CURRENT_TIMESTAMP")
    if column.generated is not None:
        words.append("STORED GENERATED" if column.generated_stored else "VIRTUAL GENERATED")
    if column.invisible:
        words.append("INVISIBLE")
    return " ".join(words)


def declared_primary_key(table: Table) -> Index | None:
    """The primary key, unless it is the hidden one (or the table is computed and has none)."""
    return table.primary_key if table.primary_key.parts and not has_row_id(table) else None


def indexes_of(table: Table) -> list[Index]:
    """Primary key first, then unique indexes, then the others, as MySQL orders them."""
    primary = declared_primary_key(table)
    others = sorted(table.indexes, key=lambda index: not index.unique)
    return [primary, *others] if primary is not None else others


def key_text(table: Table, column: schema.TableColumn) -> str:
    """The Key column: PRI, UNI, MUL or nothing."""
    primary = declared_primary_key(table)
    if primary is not None and any(part.column_id == column.id for part in primary.parts):
        return "PRI"
    leading = [index for index in table.indexes if index.parts and index.parts[0].column_id == column.id]
    if any(index.unique and len(index.parts) == 1 for index in leading):
        if primary is None and not column.nullable and _stands_for_primary(table, column):
            return "PRI"
        return "UNI"
    return "MUL" if leading else ""


def _stands_for_primary(table: Table, column: schema.TableColumn) -> bool:
    """MySQL shows the first unique key over NOT NULL columns as primary where there is none."""
    nullable = {each.id: each.nullable for each in table.columns}
    for index in table.indexes:
        if index.unique and not any(nullable[part.column_id] for part in index.parts):
            return index.parts[0].column_id == column.id
    return False


def output_column(table: Table, column: schema.TableColumn) -> OutputColumn:
    """The definition of a column as a SELECT of it would have it."""
    name = column.name
    flags = column_flags(table, column)
    return OutputColumn(name, column.type, column.nullable, table.name, table.name, name, table.database, flags)


@dataclass(frozen=True, slots=True)
class Measures:
    """The numeric columns of information_schema.COLUMNS."""

    characters: int | None = None
    octets: int | None = None
    precision: int | None = None
    scale: int | None = None
    datetime_precision: int | None = None
    charset: str | None = None
    collation: str | None = None


_PRECISIONS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.MEDIUMINT: 7, Kind.INT: 10, Kind.BIGINT: 19}


def measures(type: SqlType) -> Measures:
    kind = type.kind
    if kind in INTEGER_BYTES:
        return Measures(precision=20 if kind is Kind.BIGINT and type.unsigned else _PRECISIONS[kind], scale=0)
    if kind is Kind.DECIMAL:
        return Measures(precision=type.length or 10, scale=type.scale)
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        precision = type.length or (12 if kind is Kind.FLOAT else 22)
        return Measures(precision=precision, scale=type.scale if type.scale >= 0 else None)
    if kind is Kind.BIT:
        return Measures(precision=type.length or 1)
    if kind in (Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME):
        return Measures(datetime_precision=type.scale)
    if kind in BLOBS:
        length = BLOB_BYTES.get(kind, type.length or 0)
        return Measures(characters=length, octets=length)
    if kind in STRINGS and kind is not Kind.JSON:
        found = collation_of(type.collation or "utf8mb4_0900_ai_ci")
        charset = found.charset.name if found is not None else "utf8mb4"
        width = found.charset.bytes_max if found is not None else 4
        name = found.name if found is not None else type.collation
        if kind in BLOB_BYTES:
            octets = BLOB_BYTES[kind]
            return Measures(octets, octets, charset=charset, collation=name)
        if kind is Kind.ENUM:
            characters = max((len(member) for member in type.members), default=0)
        elif kind is Kind.SET:
            characters = sum(len(member) + 1 for member in type.members) - 1
        else:
            characters = type.length if type.length is not None else 1
        return Measures(characters, characters * width, charset=charset, collation=name)
    return Measures()
