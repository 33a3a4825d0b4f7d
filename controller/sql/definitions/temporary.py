"""Temporary tables: tables of the catalog under names that only their session translates.

The table t of the session `owner` is stored as `#sql-temp-owner-t`. `with_temporary` is the
catalog as that session sees it, with t in its place before any other table of the name; views
do not see t, whoever reads them.
While its rows are being selected a new table is `unborn`: the SELECT of CREATE TEMPORARY TABLE t … SELECT … FROM t reads
what was called t before. The INSERT names it as it is stored.
`stored_names` gives what a definition changed its stored names again.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from controller.catalog import Catalog, CatalogChange
from dataflow.schema import Table

PREFIX = "#sql-temp-"


def stored_name(owner: str, name: str) -> str:
    return f"{PREFIX}{owner}-{name}"


def temporary_tables(catalog: Catalog, owner: str) -> dict[int, Table]:
    """The session's own tables, under the names it gave them."""
    prefix = stored_name(owner, "")
    return {
        table.id: replace(table, name=table.name[len(prefix) :])
        for table in catalog.tables.values()
        if table.name.startswith(prefix)
    }


def with_temporary(catalog: Catalog, owner: str, unborn: str = "") -> Catalog:
    found = temporary_tables(catalog, owner) if owner else {}
    if not found:
        return catalog
    names = {(table.database, table.name): table.id for table in found.values()}
    names = {name: number for name, number in names.items() if catalog.tables[number].name != unborn}
    return replace(
        catalog,
        tables=MappingProxyType({**catalog.tables, **found}),
        names=MappingProxyType({**catalog.names, **names}),
        views=MappingProxyType({name: view for name, view in catalog.views.items() if name not in names}),
        stored=catalog,
    )


def is_taken(catalog: Catalog, name: tuple[str, str], table: Table | None = None) -> bool:
    """Whether a table that is to be called so finds another one: temporary tables and all others do not get in each other's way.

    `table` is the one that is renamed, None for a new one that is not temporary.
    """
    stored = catalog.stored or catalog
    found = catalog.find_table(*name)
    if table is not None and stored.tables[table.id].name.startswith(PREFIX):
        return found is not None and stored.tables[found.id].name.startswith(PREFIX)
    return stored.find_table(*name) is not None or name in stored.views


def stored_names(change: CatalogChange, owner: str, ids: set[int]) -> CatalogChange:
    """`change` as it is stored, where `ids` are temporary tables."""
    if not ids:
        return change
    put = tuple(
        replace(table, name=stored_name(owner, table.name)) if table.id in ids else table
        for table in change.tables_put
    )
    copies = tuple(
        replace(copy, table=replace(copy.table, name=stored_name(owner, copy.table.name)))
        if copy.table_id in ids
        else copy
        for copy in change.copies
    )
    return replace(change, tables_put=put, copies=copies)
