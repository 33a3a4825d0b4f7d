"""SHOW of what is stored: databases, tables, columns, indexes, and the statements that make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backend.execution.outcome import ResultSet
from controller.privileges import check_sees_database, check_sees_table
from controller.sql.definitions.show_create import show_create_database, show_create_table, type_text
from controller.sql.plan import OutputColumn
from dataflow.schema import Table
from dataflow.values.types import Row, text
from mysql_adapter.information_schema.description import (
    default_text,
    extra_text,
    key_text,
    measures,
)
from mysql_adapter.information_schema.tables import columns_seen, index_rows
from mysql_adapter.information_schema.tables import tables as all_tables
from mysql_adapter.information_schema.views import find_view, show_create_view, table_or_view
from mysql_adapter.information_schema.virtual import COLLATION, outputs_of
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.filtering import filtered

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_COLUMNS = """
    Field 64
    Type longtext
    Null 3
    Key 3
    Default longtext?
    Extra 256
"""
_FULL_COLUMNS = """
    Field 64
    Type longtext
    Collation 64?
    Null 3
    Key 3
    Default longtext?
    Extra 256
    Privileges 154
    Comment longtext
"""
_INDEX = """
    Table 64
    Non_unique int
    Key_name 64?
    Seq_in_index uint
    Column_name 64?
    Collation 1?
    Cardinality bigint?
    Sub_part bigint?
    Packed 10?
    Null 3
    Index_type 11
    Comment 8
    Index_comment 2048
    Visible 3
    Expression longtext?
"""
_TABLE_STATUS = """
    Name 64
    Engine 64?
    Version int?
    Row_format 10?
    Rows ubigint?
    Avg_row_length ubigint?
    Data_length ubigint?
    Max_data_length ubigint?
    Index_length ubigint?
    Data_free ubigint?
    Auto_increment ubigint?
    Create_time datetime?
    Update_time datetime?
    Check_time datetime?
    Collation 64?
    Checksum bigint?
    Create_options 256?
    Comment longtext?
"""


def _from(cursor: TokenCursor) -> str | None:
    return cursor.identifier() if cursor.accept_any("FROM", "IN") else None


def _titled(cursor: TokenCursor, title: str) -> str:
    """MySQL puts the LIKE pattern into the column's name."""
    mark = cursor.mark()
    if cursor.accept("LIKE") and cursor.at_string():
        title = f"{title} ({cursor.string()})"
    cursor.back_to(mark)
    return title


def _listed(session: Session) -> Iterable[str]:
    everything = session.rights.has_any("SHOW DATABASES")
    environment = session.environment
    return (environment.catalog() if everything else environment.visible_catalog(session)).databases


async def databases(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    await session.environment.database.refresh_catalog()
    rows: list[Row] = [(name,) for name in sorted(_listed(session))]
    columns = (OutputColumn(_titled(cursor, "Database"), text(64, COLLATION), False),)
    return await filtered(session, cursor, columns, rows)


async def tables(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    wanted = _from(cursor) or session.database
    await session.environment.database.refresh_catalog()
    check_sees_database(session, wanted or "")
    catalog = session.environment.visible_catalog(session)
    database = session.environment.catalog().database(wanted)
    kinds = {table.name: "SYSTEM VIEW" if table.id < 0 else "BASE TABLE" for table in catalog.tables_of(database.name)}
    kinds |= {view.name: "VIEW" for view in catalog.views_of(database.name)}
    rows: list[Row] = [(name, kinds[name]) if full else (name,) for name in sorted(kinds)]
    title = OutputColumn(_titled(cursor, f"Tables_in_{database.name}"), text(64, COLLATION), False)
    columns = (title, OutputColumn("Table_type", text(11, COLLATION), False)) if full else (title,)
    return await filtered(session, cursor, columns, rows)


async def _table(session: Session, cursor: TokenCursor) -> Table:
    if not cursor.accept_any("FROM", "IN"):
        raise cursor.error()
    database, name = cursor.qualified_name()
    database = _from(cursor) or database or session.database
    check_sees_table(session, database, name)
    return await session.environment.with_catalog(lambda catalog: table_or_view(session, session.own(catalog), database, name))


async def columns(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    table = await _table(session, cursor)
    return await filtered(session, cursor, outputs_of(_FULL_COLUMNS if full else _COLUMNS), column_rows(session, table, full))


def describe_columns() -> tuple[OutputColumn, ...]:
    return outputs_of(_COLUMNS)


def column_rows(session: Session, table: Table, full: bool) -> list[Row]:
    rows: list[Row] = []
    for column, privileges in columns_seen(session, table):
        null = "YES" if column.nullable else "NO"
        tail: Row = (null, key_text(table, column), default_text(column, session.time_zone), extra_text(column))
        if full:
            rows.append(
                (column.name, type_text(column.type), measures(column.type).collation, *tail, privileges, column.comment)
            )
        else:
            rows.append((column.name, type_text(column.type), *tail))
    return rows


async def index(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    table = await _table(session, cursor)
    rows: list[Row] = [
        (row[2], row[3], row[5], row[6], row[7], row[8], row[9], row[10], row[11], row[12], row[13], *row[14:])
        for row in index_rows(table)
    ]
    return await filtered(session, cursor, outputs_of(_INDEX), rows, like_column=2)


async def table_status(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    wanted = _from(cursor) or session.database
    check_sees_database(session, wanted or "")
    database = await session.environment.with_catalog(lambda catalog: catalog.database(wanted))
    rows: list[Row] = [(row[2], *row[4:]) for row in await all_tables(session) if row[1] == database.name]
    return await filtered(session, cursor, outputs_of(_TABLE_STATUS), rows)


async def create_table(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    database, name = cursor.qualified_name()
    cursor.expect_end()
    check_sees_table(session, database or session.database, name)
    if (database or session.database, name) in session.environment.catalog().views:
        return await _create_view(session, database, name)
    table = await session.environment.with_catalog(lambda catalog: session.own(catalog).table(database or session.database, name))
    number = None
    if any(column.auto_increment for column in table.columns):
        number = await session.environment.database.next_auto_increment(table)
    columns = (OutputColumn("Table", text(64), False), OutputColumn("Create Table", text(1024), False))
    return ResultSet(columns, [(table.name, show_create_table(table, number, session.time_zone))])


async def create_view(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    database, name = cursor.qualified_name()
    cursor.expect_end()
    check_sees_table(session, database or session.database, name)
    return await _create_view(session, database, name)


async def _create_view(session: Session, database: str | None, name: str) -> ResultSet:
    view = await session.environment.with_catalog(lambda catalog: find_view(catalog, database or session.database, name))
    titles = ("View", "Create View", "character_set_client", "collation_connection")
    columns = tuple(OutputColumn(title, text(1024 if title == "Create View" else 64), False) for title in titles)
    return ResultSet(columns, [(view.name, show_create_view(view), "utf8mb4", view.collation)])


async def create_database(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    guarded = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.identifier()
    cursor.expect_end()
    check_sees_database(session, name)
    database = await session.environment.with_catalog(lambda catalog: catalog.database(name))
    sql = show_create_database(database)
    if guarded:
        sql = sql.replace("CREATE DATABASE ", "CREATE DATABASE /*!32312 IF NOT EXISTS*/ ", 1)
    columns = (OutputColumn("Database", text(64), False), OutputColumn("Create Database", text(1024), False))
    return ResultSet(columns, [(database.name, sql)])
