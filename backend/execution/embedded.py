"""The whole engine in one process: shards on disk, the catalog beside them, no network.

For tests and tools. What a cluster does through the leading controller and ZooKeeper happens
here directly; everything else is the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from backend.execution.alteration import abandon_copies
from backend.execution.database import Database
from backend.execution.definition import carry_out, take_up
from backend.execution.local_store import LocalStore
from backend.execution.outcome import Done, Warning
from backend.shared_memory.segment import SegmentNames
from controller.account_changes import AccountStatement, plan_accounts
from controller.catalog import (
    Catalog,
    CatalogChange,
    decode_account,
    decode_database,
    decode_table,
    decode_view,
    encode_account,
    encode_database,
    encode_table,
    encode_view,
)
from controller.sql.definitions.program import plan_program
from controller.sql.settings import Settings
from dataflow.errors import Condition, CorruptState, Retryable
from persistence.shard_store import Durability

_META = b"catalog"
_decode = msgspec.msgpack.Decoder(tuple[int, int, list[bytes], list[bytes], list[bytes], list[bytes]]).decode


class LocalCatalogStore:
    """The catalog in the first shard's own records."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._catalog = self._read()
        self._publish()

    async def load(self) -> Catalog:
        return self._catalog

    async def replace(self, old_version: int, change: CatalogChange) -> Catalog:
        if self._catalog.version != old_version:
            raise Retryable(Condition.TABLE_DEFINITION_CHANGED)
        catalog = self._catalog.apply(change)
        packed = (
            catalog.version,
            catalog.next_table_id,
            [encode_database(database) for database in catalog.databases.values()],
            [encode_table(table) for table in catalog.tables.values()],
            [encode_view(view) for view in catalog.views.values()],
            [encode_account(account) for account in catalog.accounts.values()],
        )
        self._store.shards[0].put_meta(_META, msgspec.msgpack.encode(packed))
        self._catalog = catalog
        self._publish()
        return catalog

    def _read(self) -> Catalog:
        stored = self._store.shards[0].meta(_META)
        if stored is None:
            return Catalog()
        try:
            version, next_table_id, databases, tables, views, accounts = _decode(stored)
        except msgspec.DecodeError as error:
            raise CorruptState(f"catalog: {error}") from error
        return Catalog.of(
            tuple(map(decode_database, databases)),
            tuple(map(decode_table, tables)),
            version,
            next_table_id,
            tuple(map(decode_view, views)),
            tuple(map(decode_account, accounts)),
        )

    def _publish(self) -> None:
        self._store.table_versions, self._store.tables = self._catalog.versions, self._catalog.tables


async def open_embedded(
    folder: Path, shard_count: int = 1, durability: Durability = "os", names: SegmentNames | None = None
) -> Database:
    """Open or create a database under `folder`; close it with `database.store.close()`.

    With `names`, its views are in shared memory, too.
    """
    store = LocalStore(folder, shard_count, durability, names)
    catalogs = LocalCatalogStore(store)
    await take_up(await abandon_copies(catalogs), catalogs, store)

    async def define(statements: Sequence[str], database: str | None, settings: Settings) -> tuple[Done, Catalog]:
        before = await catalogs.load()
        return await change(plan_program(statements, before, database, settings), before)

    async def change_accounts(statement: AccountStatement) -> tuple[Done, Catalog]:
        before = await catalogs.load()
        return await change(plan_accounts(statement, before), before)

    async def change(change: CatalogChange, before: Catalog) -> tuple[Done, Catalog]:
        catalog = await carry_out(change, before, catalogs, store)
        warnings = tuple(Warning(note.level, note.condition.code, note.message) for note in change.notes)
        return Done(warnings=warnings), catalog

    return Database(store, await catalogs.load(), catalogs.load, define, change_accounts)
