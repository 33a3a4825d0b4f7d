"""The leading controller keeps the workers' views equal to the recorded program.

Whenever a worker has come or moved, the queries of the program are handed to shard 0 again; so
they are there after any restart without anybody asking. A change of tables may end queries over
them; those for which their tables have all they use, as with a new index, are handed over again, the
others are forgotten, as is what reads a named view that was dropped or defined anew. So is, after a while, what workers
have let go because nobody used it. What reads a named view stays as long as that does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from backend.clustering.node import Node
from backend.network.messages import Acknowledged, AddView, Message
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
        self._catalog_version = 0
        self._versions: Mapping[int, int] = {}
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
            if self._catalog_version != self._node.database.catalog.version:
                await self._follow(self._node.database.catalog)
            if self._waiting:
                await self._hand_over()
            elif time.monotonic() - self._checked > CHECK_S:
                self._checked = time.monotonic()
                await self._check()
        except MillraceError as error:
            log.info("the program waits: %s", error)

    async def _follow(self, catalog: Catalog) -> None:
        """Definitions have changed: what workers may have let go for that is handed over again."""
        program = await asyncio.to_thread(self._node.program.load)
        before, versions = self._versions or catalog.versions, catalog.versions
        changed = {each for each, version in versions.items() if before.get(each) != version}
        waiting = [query for query in program if not changed.isdisjoint([each for each, _ in query.tables]) and query.is_current(catalog)]
        self._catalog_version, self._versions = catalog.version, versions
        if waiting:
            log.info("%d queries are maintained over tables that have changed", len(waiting))
            self._waiting, self._tries = [*self._waiting, *waiting], 0

    async def _hand_over(self) -> None:
        self._tries += 1
        catalog = await self._node.load_catalog()
        current = [query for query in self._waiting if query.is_current(catalog)]
        answers: list[Message] = await asyncio.gather(*(self._node.cluster.ask(0, _request(query, catalog)) for query in current))
        still = [query for query, answer in zip(current, answers) if not isinstance(answer, Acknowledged)]
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
    tables = [encode_table(catalog.tables[table_id]) for table_id, _ in query.tables if table_id >= 0]
    named = tuple(table_id for table_id, _ in query.tables if table_id < 0)
    return AddView(query.name, query.node, query.key, tables, query.order, query.names, query.since, named)
