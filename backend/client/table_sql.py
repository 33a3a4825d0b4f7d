"""The statements behind `Table` and views by name. Values are always parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from controller.catalog import Catalog
from controller.sql.natural_key import natural_key
from controller.sql.text.lexer import quoted, split_statements
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table, TableColumn


def qualified(name: str) -> str:
    """A column's name, or a table's with or without its database."""
    return ".".join(map(quoted, name.split(".")))


def find(catalog: Catalog, schema: str | None, name: str) -> Table:
    database, _, table = name.rpartition(".")
    return catalog.table(database or schema, table)


def primary_key(table: Table) -> list[TableColumn]:
    key = table.primary_key
    columns = {column.id: column for column in table.columns if not column.invisible}
    if key is None or any(part.column_id not in columns for part in key.parts):
        raise InvalidStatement(Condition.UNKNOWN_ERROR, f"table {table.name} has no primary key")
    return [columns[part.column_id] for part in key.parts]


def select(catalog: Catalog, schema: str | None, name: str, key: Sequence[str] | None) -> str:
    """All of a table or view, by these columns; else by a table's primary key, or a view's natural one."""
    sql = f"SELECT * FROM {qualified(name)}"
    database, _, view = name.rpartition(".")
    if key is None and (database or schema, view) in catalog.views:
        key = natural_key(sql, catalog, schema)
        if key is None:
            text = f"{view} is a view that does not show what tells its rows apart: the columns to look up by have to be given"
            raise InvalidStatement(Condition.UNKNOWN_ERROR, text)
    if key is None:
        key = [each.name for each in primary_key(find(catalog, schema, name))]
    return sql + _where(key)


@lru_cache(maxsize=1000)
def insert(name: str, columns: tuple[str, ...]) -> str:
    names = [qualified(each) for each in columns]
    return f"INSERT INTO {qualified(name)} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def update(name: str, columns: Iterable[str], key: Sequence[str]) -> str:
    return f"UPDATE {qualified(name)} SET {', '.join(f'{qualified(each)} = ?' for each in columns)}" + _where(key)


def delete(name: str, key: Sequence[str]) -> str:
    return f"DELETE FROM {qualified(name)}" + _where(key)


def drop_view(name: str) -> str:
    return f"DROP VIEW {qualified(name)}"


def _where(columns: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(f"{qualified(each)} = ?" for each in columns) if columns else ""


def statements(sql: str) -> list[str]:
    return [each for each in split_statements(sql, True) if each.strip()]
