"""SHOW CREATE TABLE and SHOW CREATE DATABASE in the exact layout of MySQL 8.

ORMs, mysqldump and migration tools read this text; `plan_definition` reads it back to the
same table.
"""

from __future__ import annotations

from decimal import Decimal

from controller.catalog import CatalogDatabase
from controller.sql.definitions.partition_text import show_partitioning
from controller.sql.definitions.stored_expressions import shown
from controller.sql.text.lexer import quoted
from dataflow.schema import (
    ForeignKey,
    Index,
    KeyPart,
    Table,
    TableColumn,
    has_row_id,
    is_functional,
    is_internal,
)
from dataflow.values.collation import CHARSETS, collation
from dataflow.values.temporal import format_date, format_datetime, format_time, from_utc
from dataflow.values.types import BLOBS, INTEGERS, REALS, TEXTS, Kind, SqlType, Value

_NO_DEFAULT_SHOWN = frozenset(
    {Kind.TINYTEXT, Kind.TEXT, Kind.MEDIUMTEXT, Kind.LONGTEXT} | (BLOBS - {Kind.BINARY, Kind.VARBINARY})
)


def show_create_table(table: Table, next_auto_increment: int | None = None, time_zone: str = "UTC") -> str:
    """`next_auto_increment` is the counter's next value, if the table has one and it is known."""
    lines = [_column(table, column, time_zone) for column in table.columns if not is_internal(column)]
    names = {column.id: column for column in table.columns}
    if not has_row_id(table):
        lines.append(f"PRIMARY KEY {_parts(table.primary_key, names)}")
    lines += [_index(index, names) for index in table.indexes]
    lines += [_foreign_key(table, key) for key in sorted(table.foreign_keys, key=lambda key: key.name)]
    for check in sorted(table.checks, key=lambda check: check.name):
        suffix = "" if check.enforced else " /*!80016 NOT ENFORCED */"
        lines.append(f"CONSTRAINT {quoted(check.name)} CHECK ({shown(check.sql)}){suffix}")
    body = ",\n".join(f"  {line}" for line in lines)
    partitions = f"\n{show_partitioning(table.partitioning)}" if table.partitioning is not None else ""
    return f"CREATE TABLE {quoted(table.name)} (\n{body}\n) {_options(table, next_auto_increment)}{partitions}"


def show_create_database(database: CatalogDatabase) -> str:
    found = collation(database.collation)
    clause = _collation_clause(found.charset, database.collation)
    return (
        f"CREATE DATABASE {quoted(database.name)} /*!40100 DEFAULT CHARACTER SET {found.charset}{clause} */"
        " /*!80016 DEFAULT ENCRYPTION='N' */"
    )


def _collation_clause(charset: str, name: str) -> str:
    shown = name != CHARSETS[charset].default_collation or charset == "utf8mb4"
    return f" COLLATE {name}" if shown else ""


def _options(table: Table, next_auto_increment: int | None) -> str:
    charset = collation(table.collation).charset
    counter = next_auto_increment or table.auto_increment_start
    pieces = [f"ENGINE={table.engine}"]
    if counter > 1 and any(column.auto_increment for column in table.columns):
        pieces.append(f"AUTO_INCREMENT={counter}")
    equals = _collation_clause(charset, table.collation).replace(" COLLATE ", " COLLATE=")
    pieces.append(f"DEFAULT CHARSET={charset}{equals}")
    pieces += [f"{name}={value}" for name, value in table.options]
    if table.comment:
        pieces.append(f"COMMENT={string_literal(table.comment)}")
    return " ".join(pieces)


def string_literal(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")
    return f"'{escaped}'"


def _column(table: Table, column: TableColumn, time_zone: str) -> str:
    pieces = [quoted(column.name), type_text(column.type), *_collation(table, column)]
    if column.generated_sql:
        kind = "STORED" if column.generated_stored else "VIRTUAL"
        pieces.append(f"GENERATED ALWAYS AS ({shown(column.generated_sql)}) {kind}")
    if not column.nullable:
        pieces.append("NOT NULL")
    elif column.type.kind is Kind.TIMESTAMP:
        pieces.append("NULL")
    pieces += default_clauses(column, time_zone)
    if column.auto_increment:
        pieces.append("AUTO_INCREMENT")
    if column.invisible:
        pieces.append("/*!80023 INVISIBLE */")
    return " ".join(pieces + comment_clause(column))


def comment_clause(column: TableColumn) -> list[str]:
    return [f"COMMENT {string_literal(column.comment)}"] if column.comment else []


def type_text(found: SqlType) -> str:
    """The type as MySQL 8 writes it, without a collation."""
    kind = found.kind
    name = kind.value
    if kind in INTEGERS or kind in REALS or kind is Kind.DECIMAL:
        if kind is Kind.DECIMAL or (kind in REALS and found.scale >= 0):
            name += f"({found.length},{found.scale})"
        elif found.length is not None:
            name += f"({found.length})"
        return name + (" unsigned" if found.unsigned else "") + (" zerofill" if found.zerofill else "")
    if kind in (Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME):
        return name + (f"({found.scale})" if found.scale else "")
    if kind in (Kind.ENUM, Kind.SET):
        return f"{name}({','.join(string_literal(member) for member in found.members)})"
    if kind in (Kind.CHAR, Kind.VARCHAR, Kind.BINARY, Kind.VARBINARY, Kind.BIT):
        return f"{name}({found.length})"
    return name


def _collation(table: Table, column: TableColumn) -> list[str]:
    """CHARACTER SET where it is not the table's, COLLATE where it is not the obvious one."""
    name = column.type.collation
    if name is None or column.type.kind not in TEXTS | {Kind.ENUM, Kind.SET}:
        return []
    charset = collation(name).charset
    pieces = []
    if name != table.collation:
        pieces.append(f"CHARACTER SET {charset}")
    if name != CHARSETS[charset].default_collation or (charset == "utf8mb4" and name != table.collation):
        pieces.append(f"COLLATE {name}")
    return pieces


def default_clauses(column: TableColumn, time_zone: str = "UTC") -> list[str]:
    """A TIMESTAMP is shown in the session's zone, as it is read from a definition."""
    pieces: list[str] = []
    digits = f"({column.type.scale})" if column.type.scale else ""
    if column.default_now:
        pieces.append(f"DEFAULT CURRENT_TIMESTAMP{digits}")
    elif column.default_sql:
        pieces.append(f"DEFAULT ({shown(column.default_sql)})")
    elif column.has_default:
        if column.default is not None:
            pieces.append(f"DEFAULT {default_literal(column.type, column.default, time_zone)}")
        elif column.type.kind not in _NO_DEFAULT_SHOWN:
            pieces.append("DEFAULT NULL")
    if column.on_update_now:
        pieces.append(f"ON UPDATE CURRENT_TIMESTAMP{digits}")
    return pieces


def default_literal(found: SqlType, value: Value, time_zone: str) -> str:
    if found.kind is Kind.BIT:
        assert isinstance(value, int)
        return f"b'{value:b}'"
    if isinstance(value, bytes):
        if value.isascii() and value.decode().isprintable():
            return string_literal(value.decode())
        return f"0x{value.hex().upper()}"
    return string_literal(default_text(found, value, time_zone))


def default_text(found: SqlType, value: Value, time_zone: str = "UTC") -> str:
    """A stored default as COLUMNS.COLUMN_DEFAULT and SHOW COLUMNS have it."""
    match found.kind:
        case Kind.DATE:
            assert isinstance(value, int)
            return format_date(value)
        case Kind.DATETIME | Kind.TIMESTAMP:
            assert isinstance(value, int)
            local = from_utc(value, time_zone) if found.kind is Kind.TIMESTAMP and value else value
            return format_datetime(local, found.scale)
        case Kind.TIME:
            assert isinstance(value, int)
            return format_time(value, found.scale)
        case Kind.YEAR:
            assert isinstance(value, int)
            return f"{value:04d}"
        case Kind.BIT:
            assert isinstance(value, int)
            return f"b'{value:b}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return f"{value:.15g}" if value != int(value) or abs(value) >= 1e15 else str(int(value))
    if isinstance(value, int) and found.zerofill:
        return str(value).zfill(found.length or 0)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _parts(index: Index, columns: dict[int, TableColumn]) -> str:
    return "(" + ",".join(_part(part, columns) for part in index.parts) + ")"


def _part(part: KeyPart, columns: dict[int, TableColumn]) -> str:
    column = columns[part.column_id]
    if is_functional(column):
        return f"({shown(column.generated_sql)})" + (" DESC" if part.descending else "")
    prefix = "" if part.prefix is None else f"({part.prefix})"
    return quoted(column.name) + prefix + (" DESC" if part.descending else "")


def _index(index: Index, columns: dict[int, TableColumn]) -> str:
    kind = "UNIQUE KEY" if index.unique else "KEY"
    if index.kind in ("FULLTEXT", "SPATIAL"):
        kind = f"{index.kind} KEY"
    comment = f" COMMENT {string_literal(index.comment)}" if index.comment else ""
    return f"{kind} {quoted(index.name)} {_parts(index, columns)}{comment}"


def _foreign_key(table: Table, key: ForeignKey) -> str:
    columns = ", ".join(quoted(name) for name in key.columns)
    parents = ", ".join(quoted(name) for name in key.parent_columns)
    parent = quoted(key.parent_table)
    if key.parent_database != table.database:
        parent = f"{quoted(key.parent_database)}.{parent}"
    actions = ""
    if key.on_delete != "NO ACTION":
        actions += f" ON DELETE {key.on_delete}"
    if key.on_update != "NO ACTION":
        actions += f" ON UPDATE {key.on_update}"
    return f"CONSTRAINT {quoted(key.name)} FOREIGN KEY ({columns}) REFERENCES {parent} ({parents}){actions}"
