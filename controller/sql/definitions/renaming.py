"""RENAME TABLE: tables and views get other names, one after the other and all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from controller.catalog import Catalog, CatalogChange, CatalogView
from controller.sql.definitions.table_copies import repointed
from controller.sql.definitions.temporary import is_taken
from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table

Name = tuple[str, str]


def rename_tables(cursor: TokenReader, catalog: Catalog, read_name: Callable[[], Name]) -> CatalogChange:
    names: dict[Name, Table | CatalogView | None] = {}
    changed: dict[int, Table] = {}
    while True:
        old = read_name()
        cursor.expect("TO")
        new = read_name()
        found = names[old] if old in names else catalog.find_table(*old) or catalog.views.get(old)
        if found is None:
            raise InvalidStatement(Condition.UNKNOWN_TABLE, ".".join(old))
        renamed = _renamed(found, new, catalog, names)
        names[old], names[new] = None, renamed
        if isinstance(renamed, Table):
            changed[renamed.id] = renamed
        if not cursor.accept(","):
            break
    cursor.expect_end()
    put = tuple(replace(table, version=catalog.tables[table.id].version + 1) for table in changed.values())
    return CatalogChange(
        tables_put=(*put, *repointed(catalog, put)),
        views_put=tuple(each for each in names.values() if isinstance(each, CatalogView)),
        views_dropped=tuple(name for name, each in names.items() if each is None and name in catalog.views),
    )


def _renamed(found: Table | CatalogView, new: Name, catalog: Catalog, names: dict[Name, Table | CatalogView | None]) -> Table | CatalogView:
    table = found if isinstance(found, Table) else None
    if names[new] is not None if new in names else is_taken(catalog, new, table):
        raise InvalidStatement(Condition.TABLE_EXISTS, new[1])
    if table is None and new[0] != found.database:
        raise InvalidStatement(Condition.OTHER_SCHEMA, found.database, new[0])
    catalog.database(new[0])
    return replace(found, database=new[0], name=new[1])
