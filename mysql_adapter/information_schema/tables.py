"""The tables of information_schema that describe databases, tables, columns and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from controller.accounts import COLUMN_PRIVILEGES
from controller.catalog import HIDDEN_NAME_PREFIXES
from controller.privileges import temporary_names
from controller.sql.definitions.show_create import type_text
from controller.sql.definitions.stored_expressions import shown
from dataflow.schema import Table, TableColumn, is_functional, is_internal
from dataflow.values.types import Row
from mysql_adapter.information_schema.description import (
    declared_primary_key,
    default_text,
    extra_text,
    indexes_of,
    key_text,
    measures,
)
from mysql_adapter.information_schema.views import view_tables
from mysql_adapter.information_schema.virtual import virtual
from mysql_adapter.wire.charsets import collation_of

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


def columns_seen(session: Session, table: Table) -> Iterator[tuple[TableColumn, str]]:
    """The columns that the session may know of, with its privileges on each."""
    is_free = session.rights.everything or table.id < 0 or (table.database, table.name) in temporary_names(session)
    every = COLUMN_PRIVILEGES if table.id >= 0 else COLUMN_PRIVILEGES[:1]
    for column in table.columns:
        held = every if is_free else session.rights.of_column(table.database, table.name, column.name)
        if held and not is_internal(column):
            yield column, ",".join(held).lower()


def tables_seen(session: Session) -> list[Table]:
    """Every table by database and name, those of information_schema included."""
    tables = session.environment.visible_catalog(session).tables.values()
    shown = (table for table in tables if not table.name.startswith(HIDDEN_NAME_PREFIXES))
    return sorted(shown, key=lambda table: (table.database, table.name))


def base_tables(session: Session) -> Iterator[Table]:
    return (table for table in tables_seen(session) if table.id > 0)


@virtual("SCHEMATA", """
    CATALOG_NAME 64
    SCHEMA_NAME 64
    DEFAULT_CHARACTER_SET_NAME 64
    DEFAULT_COLLATION_NAME 64
    SQL_PATH 1?
    DEFAULT_ENCRYPTION 3
""")
def schemata(session: Session) -> Iterator[Row]:
    for database in sorted(session.environment.visible_catalog(session).databases.values(), key=lambda each: each.name):
        collation = collation_of(database.collation)
        charset = collation.charset.name if collation is not None else "utf8mb4"
        yield ("def", database.name, charset, database.collation, None, "NO")


@virtual("TABLES", """
    TABLE_CATALOG 64
    TABLE_SCHEMA 64
    TABLE_NAME 64
    TABLE_TYPE 64
    ENGINE 64?
    VERSION int?
    ROW_FORMAT 10?
    TABLE_ROWS ubigint?
    AVG_ROW_LENGTH ubigint?
    DATA_LENGTH ubigint?
    MAX_DATA_LENGTH ubigint?
    INDEX_LENGTH ubigint?
    DATA_FREE ubigint?
    AUTO_INCREMENT ubigint?
    CREATE_TIME datetime?
    UPDATE_TIME datetime?
    CHECK_TIME datetime?
    TABLE_COLLATION 64?
    CHECKSUM bigint?
    CREATE_OPTIONS 256?
    TABLE_COMMENT longtext?
""")
async def tables(session: Session) -> list[Row]:
    counted = [table for table in base_tables(session) if any(column.auto_increment for column in table.columns)]
    next_numbers = await asyncio.gather(*map(session.environment.database.next_auto_increment, counted))
    return list(_tables(session, {table.id: number for table, number in zip(counted, next_numbers)}))


def _tables(session: Session, next_numbers: Mapping[int, int]) -> Iterator[Row]:
    for table in tables_seen(session):
        if table.id < 0:
            yield (
                "def", table.database, table.name, "SYSTEM VIEW", None, 10, None, 0, 0, 0, 0, 0, 0, None, None, None, None,
                None, None, "", "",
            )  # fmt: skip
            continue
        yield (
            "def", table.database, table.name, "BASE TABLE", table.engine, 10, "Dynamic", 0, 0, 16384, 0, 0, 0,
            next_numbers.get(table.id), None, None, None, table.collation, None,
            " ".join(f"{name.lower()}={value}" for name, value in table.options), table.comment,
        )  # fmt: skip
    for database, name in sorted(session.environment.visible_catalog(session).views):
        yield ("def", database, name, "VIEW", *([None] * 16), "VIEW")


@virtual("COLUMNS", """
    TABLE_CATALOG 64
    TABLE_SCHEMA 64
    TABLE_NAME 64
    COLUMN_NAME 64?
    ORDINAL_POSITION uint
    COLUMN_DEFAULT longtext?
    IS_NULLABLE 3
    DATA_TYPE longtext?
    CHARACTER_MAXIMUM_LENGTH bigint?
    CHARACTER_OCTET_LENGTH bigint?
    NUMERIC_PRECISION ubigint?
    NUMERIC_SCALE ubigint?
    DATETIME_PRECISION uint?
    CHARACTER_SET_NAME 64?
    COLLATION_NAME 64?
    COLUMN_TYPE longtext
    COLUMN_KEY 3
    EXTRA 256?
    PRIVILEGES 154?
    COLUMN_COMMENT longtext
    GENERATION_EXPRESSION longtext
    SRS_ID uint?
""")
def columns(session: Session) -> Iterator[Row]:
    for table in (*tables_seen(session), *view_tables(session)):
        shown = [column.id for column in table.columns if not is_internal(column)]
        for column, privileges in columns_seen(session, table):
            position = shown.index(column.id) + 1
            measured = measures(column.type)
            yield (
                "def", table.database, table.name, column.name, position, default_text(column, session.time_zone),
                "YES" if column.nullable else "NO", column.type.kind.value, measured.characters, measured.octets,
                measured.precision, measured.scale, measured.datetime_precision, measured.charset,
                measured.collation, type_text(column.type), key_text(table, column), extra_text(column),
                privileges, column.comment, column.generated_sql, None,
            )  # fmt: skip


@virtual("STATISTICS", """
    TABLE_CATALOG 64
    TABLE_SCHEMA 64
    TABLE_NAME 64
    NON_UNIQUE int
    INDEX_SCHEMA 64
    INDEX_NAME 64?
    SEQ_IN_INDEX uint
    COLUMN_NAME 64?
    COLLATION 1?
    CARDINALITY bigint?
    SUB_PART bigint?
    PACKED 10?
    NULLABLE 3
    INDEX_TYPE 11
    COMMENT 8
    INDEX_COMMENT 2048
    IS_VISIBLE 3
    EXPRESSION longtext?
""")
def statistics(session: Session) -> Iterator[Row]:
    for table in base_tables(session):
        yield from index_rows(table)


def index_rows(table: Table) -> Iterator[Row]:
    by_id = {column.id: column for column in table.columns}
    for index in indexes_of(table):
        for position, part in enumerate(index.parts):
            column = by_id[part.column_id]
            order = None if index.kind == "FULLTEXT" else "D" if part.descending else "A"
            yield (
                "def", table.database, table.name, 0 if _is_unique(table, index.name, index.unique) else 1, table.database,
                index.name, position + 1, None if is_functional(column) else column.name, order, 0, part.prefix, None, "YES" if column.nullable else "",
                index.kind, "", index.comment, "YES", column.generated_sql if is_functional(column) else None,
            )  # fmt: skip


def _is_unique(table: Table, name: str, unique: bool) -> bool:
    return unique or name == table.primary_key.name


@virtual("TABLE_CONSTRAINTS", """
    CONSTRAINT_CATALOG 64
    CONSTRAINT_SCHEMA 64
    CONSTRAINT_NAME 64?
    TABLE_SCHEMA 64
    TABLE_NAME 64
    CONSTRAINT_TYPE 11
    ENFORCED 3
""")
def table_constraints(session: Session) -> Iterator[Row]:
    for table in base_tables(session):
        place = ("def", table.database)
        if declared_primary_key(table) is not None:
            yield (*place, "PRIMARY", table.database, table.name, "PRIMARY KEY", "YES")
        for index in table.indexes:
            if index.unique:
                yield (*place, index.name, table.database, table.name, "UNIQUE", "YES")
        for key in table.foreign_keys:
            yield (*place, key.name, table.database, table.name, "FOREIGN KEY", "YES")
        for check in table.checks:
            enforced = "YES" if check.enforced else "NO"
            yield (*place, check.name, table.database, table.name, "CHECK", enforced)


@virtual("KEY_COLUMN_USAGE", """
    CONSTRAINT_CATALOG 64
    CONSTRAINT_SCHEMA 64
    CONSTRAINT_NAME 64?
    TABLE_CATALOG 64
    TABLE_SCHEMA 64
    TABLE_NAME 64
    COLUMN_NAME 64?
    ORDINAL_POSITION uint
    POSITION_IN_UNIQUE_CONSTRAINT uint?
    REFERENCED_TABLE_SCHEMA 64?
    REFERENCED_TABLE_NAME 64?
    REFERENCED_COLUMN_NAME 64?
""")
def key_column_usage(session: Session) -> Iterator[Row]:
    for table in base_tables(session):
        names = {column.id: column.name for column in table.columns if not is_functional(column)}
        start = ("def", table.database)
        here = ("def", table.database, table.name)
        for index in indexes_of(table):
            if not _is_unique(table, index.name, index.unique):
                continue
            for position, part in enumerate(index.parts, 1):
                if part.column_id not in names:
                    continue  # an expression
                yield (*start, index.name, *here, names[part.column_id], position, None, None, None, None)
        for key in table.foreign_keys:
            for position, (child, parent) in enumerate(zip(key.columns, key.parent_columns), 1):
                there = (key.parent_database, key.parent_table, parent)
                yield (*start, key.name, *here, child, position, position, *there)


@virtual("REFERENTIAL_CONSTRAINTS", """
    CONSTRAINT_CATALOG 64
    CONSTRAINT_SCHEMA 64
    CONSTRAINT_NAME 64?
    UNIQUE_CONSTRAINT_CATALOG 64
    UNIQUE_CONSTRAINT_SCHEMA 64
    UNIQUE_CONSTRAINT_NAME 64?
    MATCH_OPTION 7
    UPDATE_RULE 11
    DELETE_RULE 11
    TABLE_NAME 64
    REFERENCED_TABLE_NAME 64
""")
def referential_constraints(session: Session) -> Iterator[Row]:
    catalog = session.environment.visible_catalog(session)
    for table in base_tables(session):
        for key in table.foreign_keys:
            parent = catalog.find_table(key.parent_database, key.parent_table)
            yield (
                "def", table.database, key.name, "def", key.parent_database, _unique_name(parent, key.parent_columns),
                "NONE", key.on_update, key.on_delete, table.name, key.parent_table,
            )  # fmt: skip


def _unique_name(table: Table | None, columns: tuple[str, ...]) -> str | None:
    """The unique key of the parent that a foreign key points at."""
    if table is None:
        return None
    names = {column.id: column.name.lower() for column in table.columns}
    wanted = [column.lower() for column in columns]
    for index in indexes_of(table):
        if _is_unique(table, index.name, index.unique) and [names[part.column_id] for part in index.parts] == wanted:
            return index.name
    return None


@virtual("CHECK_CONSTRAINTS", """
    CONSTRAINT_CATALOG 64
    CONSTRAINT_SCHEMA 64
    CONSTRAINT_NAME 64
    CHECK_CLAUSE longtext
""")
def check_constraints(session: Session) -> Iterator[Row]:
    for table in base_tables(session):
        for check in table.checks:
            yield ("def", table.database, check.name, shown(check.sql))
