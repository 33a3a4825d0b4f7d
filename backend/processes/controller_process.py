"""A controller process: stands by until it leads, then carries out DDL statements one by one.

All it knows is in ZooKeeper, so a standby needs nothing handed over. A leader that lost its
session notices at its next change at the latest, which ZooKeeper then refuses.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from typing import Any

from backend.clustering.node import Node
from backend.execution.alteration import abandon_copies
from backend.execution.definition import carry_out, take_up, unfinished_builds, unfinished_checks
from backend.network.messages import (
    Acknowledged,
    AskLeading,
    ChangeAccounts,
    Define,
    Defined,
    Message,
    NotLeading,
)
from backend.network.program_messages import AskTransitions, MaintainViews, PlanView
from backend.network.transport import Peer, answer_with, listen
from backend.processes.catalog_floor import note_version
from backend.processes.heartbeat import Heartbeat
from backend.processes.process_log import without_secrets
from backend.processes.program_keeper import ProgramKeeper
from backend.processes.records import begin_records
from backend.processes.settings import Deployment, own_address
from backend.processes.worker_process import catalog_tables
from controller.account_changes import plan_accounts
from controller.catalog import Catalog, CatalogChange
from controller.registry import Address
from controller.sql.definitions.program import plan_program
from dataflow.errors import Condition, MillraceError, Retryable
from dataflow.schema import Table

LEADERSHIP_CHECK_S = 0.5
PLAN_TRIES_MAX = 20

log = logging.getLogger(__name__)


class PublishedCatalog:
    """The catalog in ZooKeeper, with every worker told of a change before it counts as made."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._loaded = Catalog()

    async def known(self) -> Catalog:
        """As it was when it was last loaded or changed here; nobody but the leader changes it."""
        return self._loaded if self._loaded.version else await self.load()

    async def load(self) -> Catalog:
        self._loaded = await asyncio.to_thread(self._node.registry.load_catalog)
        return self._loaded

    async def replace(self, old_version: int, change: CatalogChange) -> Catalog:
        catalog = self._loaded  # if it is not the newest any more, the change is refused
        if catalog.version != old_version:
            raise Retryable(Condition.DEADLOCK)
        catalog = self._loaded = await asyncio.to_thread(self._node.registry.change_catalog, catalog, change)
        note_version(self._node.deployment.data_path, catalog.version)
        await self.tell_workers(catalog, change.tables_put)
        return catalog

    async def tell_workers(self, catalog: Catalog, changed: Sequence[Table] = ()) -> None:
        message = catalog_tables(catalog, changed)
        cluster = self._node.cluster
        results = await asyncio.gather(
            *(cluster.ask(shard, message) for shard in range(cluster.shard_count)), return_exceptions=True
        )
        for shard, result in enumerate(results):
            if isinstance(result, BaseException):
                # It is down, accepts nothing, and reads the catalog when it is back.
                log.warning("shard %d was not told of catalog version %d: %s", shard, catalog.version, result)


class Controller:
    def __init__(self, node: Node, address: Address) -> None:
        self._node = node
        self._address = address
        self._catalog = PublishedCatalog(node)
        self._program = ProgramKeeper(node.cluster, node.program, node.database, node.deployment.idle_view_s)
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.leads = False

    def handle(self, peer: Peer, request: int, message: Any) -> None:
        if isinstance(message, Define | ChangeAccounts):
            answer_with(self._change(message), peer, request, self._tasks)
        elif isinstance(message, MaintainViews | PlanView | AskTransitions):
            if self.leads and self._node.registry.connected:
                answer_with(self._program.answer(message), peer, request, self._tasks)
            else:
                peer.send(NotLeading(), request)
        elif isinstance(message, AskLeading):
            peer.send(Acknowledged() if self.leads else NotLeading(), request)

    async def _change(self, message: Define | ChangeAccounts) -> Message:
        if not self.leads:
            return NotLeading()
        async with self._one_at_a_time:
            before = await self._catalog.known()
            for _ in range(PLAN_TRIES_MAX):
                change, before = await self._planned(message, before)
                try:
                    after = await carry_out(change, before, self._catalog, self._node.cluster)
                    break
                except Retryable as error:
                    log.info("%s; planned again", error)
                    before = await self._catalog.load()
            else:
                raise Retryable(Condition.DEADLOCK)
        log.info("catalog version %d after: %.200s", after.version, _shown(message))
        notes = [(note.level, note.condition.code, note.message) for note in change.notes]
        return Defined(notes, self._node.registry.last_head)

    async def _planned(self, message: Define | ChangeAccounts, before: Catalog) -> tuple[CatalogChange, Catalog]:
        """What to change, and the catalog that it was planned for.

        A change is refused if the catalog is not the newest; that there is nothing to change has to be looked at again.
        """
        try:
            change = _planned(message, before)
            if not change.is_empty:
                return change, before
        except MillraceError:
            newest = await self._catalog.load()
            if newest.version == before.version:
                raise
        newest = await self._catalog.load()
        return _planned(message, newest), newest

    async def lead_when_possible(self) -> None:
        """Stand by, lead, and stand by again if the session was lost."""
        while True:
            try:
                leads = await asyncio.to_thread(self._node.registry.try_to_lead, self._address)
                if leads and not self.leads:
                    await self._take_over()
                self.leads = leads
                if not leads:
                    await self._until_no_leader()
                    continue
                await self._program.look()
            except Retryable as error:  # ZooKeeper may be away for a while
                log.info("leadership is uncertain: %s", error)
                self.leads = False
            await asyncio.sleep(LEADERSHIP_CHECK_S)

    async def _until_no_leader(self) -> None:
        loop = asyncio.get_running_loop()
        vacant = asyncio.Event()

        def on_vacant() -> None:
            loop.call_soon_threadsafe(vacant.set)

        await asyncio.to_thread(self._node.registry.wait_without_leader, on_vacant)
        await vacant.wait()

    async def _take_over(self) -> None:
        """Finish what a predecessor left half done."""
        log.info("controller %d leads", os.getpid())
        self._program.forget()
        catalog = await abandon_copies(self._catalog)
        if unfinished_builds(catalog) or unfinished_checks(catalog):
            task = asyncio.ensure_future(self._finish(catalog))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, catalog: Catalog) -> None:
        async with self._one_at_a_time:
            await self._catalog.tell_workers(catalog)
            for error in await take_up(catalog, self._catalog, self._node.cluster):
                log.error("left half done by another controller: %s", error)


def _planned(message: Define | ChangeAccounts, catalog: Catalog) -> CatalogChange:
    if isinstance(message, ChangeAccounts):
        return plan_accounts(message.statement, catalog)
    return plan_program(message.statements, catalog, message.database, message.settings)


def _shown(message: Define | ChangeAccounts) -> str:
    """The statement for the log, without what passwords are stored as."""
    if isinstance(message, Define):
        return without_secrets("; ".join(message.statements))
    return f"{message.statement.action} {[(each.user, each.host) for each in message.statement.users]}"


async def _serve(name: str, deployment: Deployment) -> None:
    Heartbeat(deployment.secret_bytes, name).follow(deployment.watchdog_s)
    node = Node(deployment)
    await node.start()
    controller: Controller | None = None

    def handle(peer: Peer, request: int, message: Any) -> None:
        assert controller is not None
        controller.handle(peer, request, message)

    _, port = await listen(own_address(deployment.internal_host), 0, deployment.secret_bytes, handle)
    controller = Controller(node, Address(own_address(deployment.internal_host), port, os.getpid()))
    leading = asyncio.ensure_future(controller.lead_when_possible())
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    leading.cancel()
    await node.stop()


def run(number: str, deployment_path: str) -> None:
    deployment = Deployment.load(deployment_path)
    name = f"controller-{number}"
    begin_records(deployment, name)
    asyncio.run(_serve(name, deployment))
