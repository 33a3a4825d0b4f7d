"""The leading controller carries out a planned DDL statement.

A change of the catalog is published at once; statements planned before find a stale schema
at their commit and are planned again. Dropping and truncating is just that: ids are never
reused, and what is left of old tables is removed elsewhere.

A new index is built online. It is published as `building`, so every write from then on
maintains it and none reads it; then the rows stored before get their entries
(`backend.execution.index_fill`); then `building` is cleared.
If a unique index turns out to have duplicates, the tables of the statement become what they
were before it. A new foreign key is enforced from its first moment too; then the stored rows
are checked, and it goes again if one of them has no parent; until then it is `unchecked`. A
controller that takes over finishes what is still building or unchecked (`take_up`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from backend.clustering.store import Store
from backend.execution.alteration import carry_out_copy
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import find_bound, row_address, row_decoder
from backend.execution.index_fill import fill_index
from backend.execution.transaction import Transaction
from backend.execution.writes.numbers import lower_counter
from backend.execution.writes.references import Reference, Values
from controller.catalog import Catalog, CatalogChange
from dataflow.errors import InvalidStatement, MillraceError
from dataflow.schema import Table
from persistence.layout import has_entries

Build = tuple[int, int]
"""(table id, index id)"""
ForeignKeyName = tuple[int, str]
"""(table id, name)"""


class CatalogStore(Protocol):
    """Where the catalog is kept."""

    async def load(self) -> Catalog: ...

    async def replace(self, old_version: int, change: CatalogChange) -> Catalog:
        """Apply `change` to the catalog of that version and return the new one.

        When it returns, no shard accepts a commit for an earlier version of a changed table.
        """
        ...


async def carry_out(change: CatalogChange, before: Catalog, catalog_store: CatalogStore, store: Store) -> Catalog:
    """Publish `change`, planned for the catalog `before`, and build its indexes; on failure nothing of it remains."""
    if change.is_empty:
        return before
    change = unchecked(change)
    if change.copies:  # never with other statements, see controller.sql.definitions.program
        [copy] = change.copies
        catalog = await carry_out_copy(copy, change, catalog_store, store)
        return await finish_checks(change.checks, catalog_store, store) if change.checks else catalog
    catalog = await catalog_store.replace(before.version, change)
    try:
        if change.builds:
            catalog = await finish_builds(change.builds, catalog_store, store)
        for table_id in change.counters:
            await lower_counter(store, catalog.tables[table_id])
        for table_id, name in change.checks:
            await check_foreign_key(store, catalog, table_id, name)
        return await _checked(change.checks, catalog_store) if change.checks else catalog
    except MillraceError:
        await _undo(change, before, catalog_store)
        raise


async def take_up(catalog: Catalog, catalog_store: CatalogStore, store: Store) -> list[MillraceError]:
    """Finish what was left half done; an index or key that the rows do not allow goes. What was wrong."""
    errors: list[MillraceError] = []
    for table_id, index_id in unfinished_builds(catalog):
        try:
            await finish_builds([(table_id, index_id)], catalog_store, store)
        except MillraceError as error:
            errors.append(error)
            if isinstance(error, InvalidStatement):
                now = await catalog_store.load()
                table = now.tables[table_id]
                indexes = tuple(index for index in table.indexes if index.id != index_id)
                without = replace(table, indexes=indexes, version=table.version + 1)
                await catalog_store.replace(now.version, CatalogChange(tables_put=(without,)))
    for check in unfinished_checks(catalog):
        try:
            await finish_checks([check], catalog_store, store)
        except MillraceError as error:
            errors.append(error)
    return errors


def unfinished_builds(catalog: Catalog) -> tuple[Build, ...]:
    return tuple(
        (table.id, index.id) for table in catalog.tables.values() for index in table.indexes if index.building
    )


async def finish_builds(builds: Sequence[Build], catalog_store: CatalogStore, store: Store) -> Catalog:
    """Fill the indexes and make them readable."""
    catalog = await catalog_store.load()
    for table_id, index_id in builds:
        table = catalog.tables[table_id]
        index = next(index for index in table.indexes if index.id == index_id)
        if has_entries(table, index):
            await fill_index(store, table, index)
    ready = []
    for table_id in dict.fromkeys(table_id for table_id, _ in builds):
        table = catalog.tables[table_id]
        done = {index_id for built_table, index_id in builds if built_table == table_id}
        indexes = tuple(replace(index, building=index.building and index.id not in done) for index in table.indexes)
        ready.append(replace(table, indexes=indexes, version=table.version + 1))
    return await catalog_store.replace(catalog.version, CatalogChange(tables_put=tuple(ready)))


def unfinished_checks(catalog: Catalog) -> tuple[ForeignKeyName, ...]:
    return tuple(
        (table.id, key.name) for table in catalog.tables.values() for key in table.foreign_keys if key.unchecked
    )


async def finish_checks(checks: Sequence[ForeignKeyName], catalog_store: CatalogStore, store: Store) -> Catalog:
    """A foreign key that the stored rows do not fulfil goes again; the rest of its statement stays."""
    catalog = await catalog_store.load()
    for table_id, name in checks:
        try:
            await check_foreign_key(store, catalog, table_id, name)
        except InvalidStatement:
            table = catalog.tables[table_id]
            keys = tuple(key for key in table.foreign_keys if key.name != name)
            without = replace(table, foreign_keys=keys, version=table.version + 1)
            await catalog_store.replace(catalog.version, CatalogChange(tables_put=(without,)))
            raise
    return await _checked(checks, catalog_store)


def unchecked(change: CatalogChange) -> CatalogChange:
    """The change with its new foreign keys marked as still to be checked."""
    if not change.checks:
        return change
    copies = tuple(replace(copy, table=_marked(copy.table, change.checks, True)) for copy in change.copies)
    tables = tuple(_marked(table, change.checks, True) for table in change.tables_put)
    return replace(change, tables_put=tables, copies=copies)


async def _checked(checks: Sequence[ForeignKeyName], catalog_store: CatalogStore) -> Catalog:
    catalog = await catalog_store.load()
    tables = {table_id: catalog.tables[table_id] for table_id, _ in checks}
    marked = tuple(replace(_marked(table, checks, False), version=table.version + 1) for table in tables.values())
    return await catalog_store.replace(catalog.version, CatalogChange(tables_put=marked))


def _marked(table: Table, checks: Sequence[ForeignKeyName], unchecked: bool) -> Table:
    keys = tuple(
        replace(key, unchecked=unchecked) if (table.id, key.name) in checks else key for key in table.foreign_keys
    )
    return replace(table, foreign_keys=keys)


async def _undo(change: CatalogChange, before: Catalog, catalog_store: CatalogStore) -> None:
    """Put everything back as it was, the tables able to read what was written in between."""
    now = await catalog_store.load()
    restored = []
    created = []
    for changed in change.tables_put:
        table, old = now.tables[changed.id], before.tables.get(changed.id)
        if old is None:
            created.append(table.id)
            continue
        formats = table.formats if table.formats[-1] == old.formats[-1] else (*table.formats, old.formats[-1])
        restored.append(
            replace(
                old,
                version=table.version + 1,
                formats=formats,
                next_column_id=table.next_column_id,
                next_index_id=table.next_index_id,
            )
        )
    await catalog_store.replace(
        now.version,
        CatalogChange(
            databases_put=tuple(
                before.databases[name]
                for name in (*change.databases_dropped, *(each.name for each in change.databases_put))
                if name in before.databases
            ),
            databases_dropped=tuple(
                each.name for each in change.databases_put if each.name not in before.databases
            ),
            tables_put=tuple(restored),
            tables_dropped=tuple(created),
            views_put=tuple(view for name, view in before.views.items() if now.views.get(name) != view),
            views_dropped=tuple(name for name in now.views if name not in before.views),
        ),
    )


async def check_foreign_key(store: Store, catalog: Catalog, table_id: int, name: str) -> None:
    """1452 if a stored row points at nothing."""
    table = catalog.tables[table_id]
    key = next(key for key in table.foreign_keys if key.name == name)
    reference = Reference(table, key, catalog.find_table(key.parent_database, key.parent_table))
    if reference.parent is None or reference.parent_index is None:
        return
    decode = row_decoder(table)
    async for chunk in find_bound(Transaction(store), table, Bound(AccessPath(table.primary_key), [()], [])):
        pointing = [(found, reference.child_values(decode(found[2]))) for found in chunk]
        keys = {values: reference.encoded(values) for _, values in pointing if values is not None}
        present = await _present(store, reference, keys)
        orphans = [found for found, values in pointing if values is not None and values not in present]
        now = await store.get([row_address(store, found[0]) for found in orphans])
        # Parent and child may have gone together since the child was read.
        if any(stored is not None and stored[0] == found[1] for found, stored in zip(orphans, now)):
            raise reference.no_parent()


async def _present(store: Store, reference: Reference, keys: Mapping[Values, bytes | None]) -> set[Values]:
    """Those of the keys that a parent has."""
    parent, index = reference.parent, reference.parent_index
    assert parent is not None and index is not None
    if reference.names_one_row:
        named = [(values, key) for values, key in keys.items() if key is not None]
        found = await store.get([reference.target(store, key) for _, key in named])
        return {values for (values, _), stored in zip(named, found) if stored is not None}
    present = set()
    for values in keys:
        async for chunk in find_bound(Transaction(store), parent, Bound(AccessPath(index), [values], [])):
            if chunk:
                present.add(values)
    return present
