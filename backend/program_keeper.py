"""The leading controller's care for the program: what it says is maintained is what workers maintain.

Whenever a worker has come or moved, the queries of the program are handed to shard 0 again; so
they are there after any restart without anybody asking. What a change of tables has ended is
forgotten at once, and so is, after a while, what workers have let go because nobody used it. What
reads a named view stays as long as its tables do.
"""

from __future__ import annotations

import asyncio
import logging
import time

from backend.messages import AddView, Done, Message
from backend.node import Node
from controller.catalog import Catalog, encode_table
from controller.program import MaintainedQuery
from dataflow.errors import MillraceError

LOOK_S = 0.5
CHECK_S = 30.0
TRIES_MAX = 40
"""How often a query is handed over until the worker, which may still wait for others, has it."""
ABSENCES_MAX = 10
"""After so many checks that did not find it, a query has retired."""

log = logging.getLogger(__name__)


class ProgramKeeper:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._workers: object = None
        self._waiting: list[MaintainedQuery] = []
        self._tries = 0
        self._absences: dict[bytes, int] = {}
        self._checked = time.monotonic()

    async def look(self) -> None:
        """To be called again and again while this process leads."""
        cluster = self._node.cluster
        workers = dict(cluster.addresses)
        if workers != self._workers and len(workers) == cluster.shard_count:
            self._workers, self._tries = workers, 0
            self._waiting = await asyncio.to_thread(self._node.program.load)
            if self._waiting:
                log.info("%d queries are to be maintained again", len(self._waiting))
        try:
            if self._waiting:
                await self._hand_over()
            elif time.monotonic() - self._checked > CHECK_S:
                self._checked = time.monotonic()
                await self._check()
        except MillraceError as error:
            log.info("the program waits: %s", error)

    async def _hand_over(self) -> None:
        self._tries += 1
        catalog = await self._node.load_catalog()
        still: list[MaintainedQuery] = []
        for query in self._waiting:
            if query.is_current(catalog):
                answer: Message = await self._node.cluster.ask(0, _request(query, catalog))
                if not isinstance(answer, Done):
                    still.append(query)
        self._waiting = still if self._tries < TRIES_MAX else []

    async def _check(self) -> None:
        """Forget what is out of date, or gone."""
        # In this order: what is recorded was maintained before.
        program = await asyncio.to_thread(self._node.program.load)
        catalog = await self._node.load_catalog()
        hosted = {view.name for _, shard in await self._node.cluster.view_status() for view in shard.views}
        absent = [each.name for each in program if not each.names and each.name not in hosted]
        self._absences = {name: self._absences.get(name, 0) + 1 for name in absent}
        gone = {name for name, count in self._absences.items() if count >= ABSENCES_MAX}
        gone |= {each.name for each in program if not each.is_current(catalog)}
        if gone:
            await asyncio.to_thread(self._node.program.forget, gone)
            log.info("%d queries are not maintained any more", len(gone))


def _request(query: MaintainedQuery, catalog: Catalog) -> AddView:
    tables = [encode_table(catalog.tables[table_id]) for table_id, _ in query.tables]
    return AddView(query.name, query.node, query.key, tables, query.order, query.names, query.since)
