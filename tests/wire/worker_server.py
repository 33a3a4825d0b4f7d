"""A server over real workers, all in one event loop: what adapter and workers say to each other goes through sockets."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.clustering.cluster import Cluster
from backend.execution.database import Database
from backend.execution.definition import carry_out
from backend.execution.outcome import Done
from backend.network.transport import connect
from backend.processes.program_keeper import ProgramKeeper
from backend.processes.worker_process import catalog_tables
from backend.shared_memory.segment import SegmentNames
from backend.worker.worker import Worker
from controller.account_changes import AccountStatement, plan_accounts
from controller.catalog import Catalog, CatalogChange
from controller.program import ProgramTransition
from controller.registry import Address
from controller.sql.definitions.program import plan_program
from controller.sql.settings import Settings
from dataflow.schema import Table
from mysql_adapter.server import Limits
from persistence.shard_store import Durability, ShardStore
from tests.wire.server import ServerThread

SECRET = b"s" * 32
MEMORY_BYTES = 1 << 28


class MemoryRecord:
    """The program's record, while the process lives."""

    def __init__(self) -> None:
        self.transitions: list[ProgramTransition] = []

    def load(self) -> list[ProgramTransition]:
        return list(self.transitions)

    def record(self, transition: ProgramTransition) -> None:
        self.transitions.append(transition)


class WorkerServer(ServerThread):
    """`workers`, `cluster` and `keeper` belong to the server's thread."""

    workers: list[Worker]
    cluster: Cluster
    keeper: ProgramKeeper

    def __init__(self, folder: Path, durability: Durability = "os", limits: Limits | None = None, workers: int = 1) -> None:
        super().__init__(self._open, limits=limits)
        self._folder = folder
        self._durability = durability
        self._catalog = Catalog()
        self._worker_count = workers
        self._listening: list[asyncio.Server] = []
        self.record = MemoryRecord()

    @property
    def worker(self) -> Worker:
        return self.workers[0]

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    async def _open(self) -> Database:
        self.cluster = Cluster(self._worker_count, SECRET)
        await self.start_worker()
        database = Database(self.cluster, self._catalog, self.load, self._define, self._change_accounts)
        self.cluster.planner = self.keeper = ProgramKeeper(self.cluster, self.record, database, math.inf)
        return database

    async def start_worker(self) -> None:
        self.workers, self._listening, ports = [], [], list[int]()
        for shard in range(self._worker_count):
            store = ShardStore(self._folder / f"shard-{shard}", self._durability)
            worker = Worker(shard, self._worker_count, store, MEMORY_BYTES, SegmentNames(str(self._folder), shard))
            listening, port = await worker.serve("127.0.0.1", SECRET)
            self.workers.append(worker)
            self._listening.append(listening)
            for lower, known in enumerate(ports):
                peer = await connect("127.0.0.1", known, SECRET, worker.from_shard, on_lost=worker.shard_lost)
                worker.shard_found(lower, peer)
            ports.append(port)
        self._tell_tables()
        self.cluster.set_addresses({shard: Address("127.0.0.1", port) for shard, port in enumerate(ports)})

    async def stop_worker(self) -> None:
        """As one that dies between two epochs: what it has answered is stored, and nobody is told."""
        for listening in self._listening:
            listening.close()
        for peer in self.cluster._peers.values():
            peer.close()
        await self._idle()
        for worker in self.workers:
            worker.close()

    async def _idle(self) -> None:
        while not all(worker.epochs.idle for worker in self.workers):
            await asyncio.sleep(0)

    def _tell_tables(self, changed: Sequence[Table] = ()) -> None:
        catalog = self._catalog
        for worker in self.workers:
            worker.tables.learn(catalog_tables(catalog, changed))

    # --- the catalog, in memory

    async def load(self) -> Catalog:
        return self._catalog

    async def replace(self, old_version: int, change: CatalogChange) -> Catalog:
        assert self._catalog.version == old_version
        self._catalog = self._catalog.apply(change)
        self._tell_tables(change.tables_put)
        await self._idle()
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
