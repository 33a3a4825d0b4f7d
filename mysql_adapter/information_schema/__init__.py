"""Computed tables beside the stored ones, visible to the planner like any other: information_schema, mysql, millrace.

Names of its tables are not case-sensitive, unlike those of stored tables.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from controller.catalog import Catalog, CatalogDatabase
from dataflow.schema import Table
from dataflow.values.types import Row
from mysql_adapter.information_schema import accounts, millrace, partitions, server, tables, views
from mysql_adapter.information_schema.virtual import COLLATION, DATABASE, TABLES

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

__all__ = ["DATABASE", "TABLES", "accounts", "extended", "millrace", "partitions", "rows_of", "server", "tables", "views"]

V = TypeVar("V")
_DATABASES = {name: CatalogDatabase(name, COLLATION) for name, _ in TABLES}


class _Names(Mapping[tuple[str, str], int]):
    """The catalog's table names, with those of information_schema in any case."""

    def __init__(self, base: Mapping[tuple[str, str], int]) -> None:
        self._base = base

    def __getitem__(self, key: tuple[str, str]) -> int:
        found = self._base.get(key)
        if found is not None:
            return found
        database, name = key
        return TABLES[database.lower(), name.lower()].definition.id

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._base
        for table in TABLES.values():
            yield (table.definition.database, table.definition.name)

    def __len__(self) -> int:
        return len(self._base) + len(TABLES)


class _Databases(Mapping[str, CatalogDatabase]):
    """All of them; only information_schema is listed, so that dumps leave the others out."""

    def __init__(self, base: Mapping[str, CatalogDatabase]) -> None:
        self._base = base

    def __getitem__(self, key: str) -> CatalogDatabase:
        found = self._base.get(key)
        return _DATABASES[key.lower()] if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from self._base
        yield DATABASE

    def __len__(self) -> int:
        return len(self._base) + 1


_DEFINITIONS = {table.definition.id: table.definition for table in TABLES.values()}
_BY_ID = {table.definition.id: table for table in TABLES.values()}


def extended(base: Catalog) -> Catalog:
    """`base` with information_schema in it."""
    return Catalog(
        _Databases(base.databases),
        {**base.tables, **_DEFINITIONS},
        _Names(base.names),
        base.version,
        base.next_table_id,
        base.views,
        base.accounts,
    )


async def rows_of(session: Session, table: Table) -> list[Row]:
    rows = _BY_ID[table.id].rows(session)
    return list(await rows if isinstance(rows, Awaitable) else rows)
