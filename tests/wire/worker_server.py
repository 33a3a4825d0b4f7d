"""A server over a real worker, both in one event loop: what adapter and worker say to each other goes through a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.clustering.cluster import Cluster
from backend.execution.database import Database
from backend.execution.definition import carry_out
from backend.execution.outcome import Done
from backend.network.messages import SetTables
from backend.shared_memory.segment import SegmentNames
from backend.worker.worker import Worker
from controller.account_changes import AccountStatement, plan_accounts
from controller.catalog import Catalog, CatalogChange
from controller.registry import Address
from controller.sql.definitions.program import plan_program
from controller.sql.settings import Settings
from mysql_adapter.server import Limits
from persistence.shard_store import Durability, ShardStore
from tests.wire.server import ServerThread

SECRET = b"s" * 32
MEMORY_BYTES = 1 << 28


class WorkerServer(ServerThread):
    """`worker` and `cluster` belong to the server's thread."""

    worker: Worker
    cluster: Cluster

    def __init__(self, folder: Path, durability: Durability = "os", limits: Limits | None = None) -> None:
        super().__init__(self._open, limits=limits)
        self._folder = folder
        self._durability = durability
        self._catalog = Catalog()
        self._listening: asyncio.Server | None = None

    async def _open(self) -> Database:
        self.cluster = Cluster(1, SECRET)
        await self.start_worker()
        return Database(self.cluster, self._catalog, self.load, self._define, self._change_accounts)

    async def start_worker(self) -> None:
        names = SegmentNames(str(self._folder), 0)
        store = ShardStore(self._folder / "shard", self._durability)
        self.worker = Worker(0, 1, store, MEMORY_BYTES, names)
        self._listening, port = await self.worker.serve("127.0.0.1", SECRET)
        self._tell_tables()
        self.cluster.set_addresses({0: Address("127.0.0.1", port)})

    async def stop_worker(self) -> None:
        """As one that dies between two epochs: what it has answered is stored, and nobody is told."""
        assert self._listening is not None
        self._listening.close()
        for peer in self.cluster._peers.values():
            peer.close()
        while not self.worker.epochs.idle:
            await asyncio.sleep(0)
        self.worker.close()

    def _tell_tables(self) -> None:
        catalog = self._catalog
        self.worker.tables.learn(SetTables(catalog.version, dict(catalog.versions), catalog.next_table_id))

    # --- the catalog, in memory

    async def load(self) -> Catalog:
        return self._catalog

    async def replace(self, old_version: int, change: CatalogChange) -> Catalog:
        assert self._catalog.version == old_version
        self._catalog = self._catalog.apply(change)
        self._tell_tables()
        while not self.worker.epochs.idle:
            await asyncio.sleep(0)
        return self._catalog

    async def _define(self, statements: Sequence[str], database: str | None, settings: Settings) -> tuple[Done, Catalog]:
        return await self._carry_out(plan_program(statements, self._catalog, database, settings))

    async def _change_accounts(self, statement: AccountStatement) -> tuple[Done, Catalog]:
        return await self._carry_out(plan_accounts(statement, self._catalog))

    async def _carry_out(self, change: CatalogChange) -> tuple[Done, Catalog]:
        return Done(), await carry_out(change, self._catalog, self, self.cluster)


@contextmanager
def worker_server(folder: Path, **options: Any) -> Iterator[WorkerServer]:
    with WorkerServer(folder, **options) as server:
        yield server
        server.wait_for(server.stop_worker())
        server.call(server.cluster.close)
