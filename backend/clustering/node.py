"""A process's part in a cluster: its registry session, the shards, the database.

The database's catalog is a replica: it follows ZooKeeper with a short delay, and
`load_catalog` asks for the newest. Acting on an old one does no harm, because workers
refuse commits that were planned for another version of a table.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from backend.clustering.cluster import Cluster
from backend.clustering.leader import LeadingController
from backend.execution.database import Database
from backend.execution.outcome import Done, Warning
from backend.jobs.data_jobs import DataJobs
from backend.network.messages import AskLeading, ChangeAccounts, Define, Defined, NotLeading
from backend.network.transport import Peer, connect
from backend.processes.settings import Deployment
from controller.account_changes import AccountStatement
from controller.catalog import Catalog
from controller.program import ProgramRecord, queries_left
from controller.registry import Address, Registry
from controller.sql.settings import Settings
from dataflow.errors import Condition, MillraceError, Retryable

LEADER_PATIENCE_S = 20.0
LEADER_POLL_S = 0.1
INHERITED_S = 600.0
"""After this, queries that were maintained before the process began are as new as any other."""

log = logging.getLogger(__name__)


class Node:
    """One process's part in the cluster, from `start` to `stop`."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
        self.cluster = Cluster(deployment.shard_count, deployment.secret_bytes)
        self.database = Database(self.cluster, Catalog(), self.load_catalog, self._define, self._change_accounts)
        self.cluster.jobs = DataJobs(self.cluster, self._launcher, deployment.secret_bytes, deployment.spark_rows)
        self.program = ProgramRecord(self.registry)
        self.cluster.planner = self._leader = LeadingController(self._connect_to_leader)
        self._changing = asyncio.Lock()
        self._loading = asyncio.Lock()
        self._forgetting: asyncio.TimerHandle | None = None
        self._is_stopped = False

    async def start(self) -> None:
        loop = asyncio.get_running_loop()

        def on_loop(callback: Callable[..., object], *arguments: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
                loop.call_soon_threadsafe(callback, *arguments)

        def moved(workers: dict[int, Address]) -> None:
            on_loop(self.cluster.set_addresses, workers)

        await asyncio.to_thread(self.registry.start, 60.0)
        await asyncio.to_thread(self.registry.watch_workers, moved)
        await self.database.refresh_catalog()
        await asyncio.to_thread(self.registry.watch_catalog, lambda catalog: on_loop(self.database.learn_catalog, catalog))
        names = queries_left(await asyncio.to_thread(self.program.load)).keys()
        self.cluster.inherited.update(names)
        self.cluster.known_views.update(names)
        self._forgetting = loop.call_later(INHERITED_S, self.cluster.inherited.clear)

    async def stop(self) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._leader.close()
        self.cluster.close()
        await asyncio.to_thread(self.registry.stop)

    async def _launcher(self) -> Address | None:
        return await asyncio.to_thread(self.registry.launcher)

    async def register_adapter(self, name: str, address: Address) -> None:
        """Say that this process takes clients now."""
        await asyncio.to_thread(self.registry.register_adapter, name, address)

    async def load_catalog(self) -> Catalog:
        """A catalog at least as new as any change acknowledged before this call; waits for ZooKeeper if need be."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LEADER_PATIENCE_S
        while True:
            try:
                return await self._load_catalog()
            except Retryable:
                if loop.time() > deadline:
                    raise
                await asyncio.sleep(LEADER_POLL_S)

    async def _load_catalog(self) -> Catalog:
        self._check_running()
        async with self._loading:
            return await asyncio.to_thread(self.registry.load_catalog)

    async def _define(
        self, statements: Sequence[str], database: str | None, settings: Settings
    ) -> tuple[Done, Catalog]:
        """Have the leading controller carry out DDL statements."""
        return await self._change(Define(list(statements), database, replace(settings, variables=())))

    async def _change_accounts(self, statement: AccountStatement) -> tuple[Done, Catalog]:
        return await self._change(ChangeAccounts(statement))

    async def _change(self, message: Define | ChangeAccounts) -> tuple[Done, Catalog]:
        async with self._changing:  # the leader does one after the other, too
            defined = await self._defined(message)
        warnings = tuple(Warning(level, code, message) for level, code, message in defined.warnings)
        catalog = None if defined.head is None else self.registry.learn(defined.head)
        return Done(warnings=warnings), catalog or await self.load_catalog()

    async def _defined(self, message: Define | ChangeAccounts) -> Defined:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LEADER_PATIENCE_S
        while (defined := await self._ask_leader(message)) is None:
            if loop.time() > deadline:
                raise Retryable(Condition.UNKNOWN_ERROR, "no controller leads at the moment; try again")
            await asyncio.sleep(LEADER_POLL_S)
        return defined

    async def _ask_leader(self, message: Define | ChangeAccounts) -> Defined | None:
        """None if the statement did not reach a leader."""
        self._check_running()
        peer = await self._leader.peer()
        if peer is not None and not await _leads(peer):
            self._leader.leave(peer)
            peer = await self._leader.peer()
        if peer is None:
            return None
        try:
            answer: Defined | NotLeading = await peer.ask(message)
        except ConnectionError as error:
            raise MillraceError(
                Condition.UNKNOWN_ERROR,
                "the controller was lost during the statement; it may or may not have happened",
            ) from error
        if isinstance(answer, Defined):
            return answer
        self._leader.leave(peer)
        return None

    def _check_running(self) -> None:
        if self._is_stopped:
            raise RuntimeError("the database is closed")

    async def _connect_to_leader(self) -> Peer | None:
        try:
            address = await asyncio.to_thread(self.registry.leader)
            return None if address is None else await connect(address.host, address.port, self.deployment.secret_bytes)
        except (Retryable, OSError, TimeoutError):
            return None


async def _leads(peer: Peer) -> bool:
    """Asked before each statement: one that is lost on the way may or may not have happened."""
    try:
        return not isinstance(await peer.ask(AskLeading()), NotLeading)
    except ConnectionError:
        return False
