"""The leading controller keeps the workers' views equal to the recorded program.

Whenever a worker has come or moved, the queries of the program are handed to shard 0 again; so
they are there after any restart without anybody asking. A change of tables ends the queries over
them; those whose tables have kept their columns, as with a new index, are handed over again, the
others are forgotten, as is what reads a named view that was dropped or defined anew. So is, after a while, what workers
have let go because nobody used it. What reads a named view stays as long as that does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

from backend.clustering.node import Node
from backend.network.messages import Acknowledged, AddView, Message
from backend.views.view_definition import view_name
from controller.catalog import Catalog, decode_node, encode_table
from controller.program import MaintainedQuery
from dataflow.errors import MillraceError
from dataflow.plan.node import bases_of

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
        """Definitions have changed."""
        program = await asyncio.to_thread(self._node.program.load)
        moved = [each for query in program if (each := moved_query(query, catalog)) is not None]
        for query in moved:
            await asyncio.to_thread(self._node.program.record, query)
        self._catalog_version = catalog.version
        if moved:
            log.info("%d queries are maintained over tables that have changed", len(moved))
            self._waiting, self._tries = [*self._waiting, *moved], 0

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


def moved_query(query: MaintainedQuery, catalog: Catalog) -> MaintainedQuery | None:
    """The same query over its tables as they are now; None if it is, or its tables have other columns."""
    tables = {table_id: catalog.tables.get(table_id) for table_id, _ in query.tables if table_id >= 0}
    named = [each for each in query.tables if each[0] < 0]
    if query.is_current(catalog) or None in tables.values() or any(each not in catalog.versions for each, _ in named):
        return None
    for base in bases_of(decode_node(query.node)):
        table = tables[base.table]
        assert table is not None
        places = {column.id: place for place, column in enumerate(table.columns)}
        key = tuple([places[part.column_id] for part in table.primary_key.parts])
        if base.types != tuple([column.type for column in table.columns]) or base.primary_key != key:
            return None
    versions = tuple(sorted([(table.id, table.version) for table in tables.values() if table is not None] + named))
    return replace(query, name=view_name(query.node, query.key, versions, query.order), tables=versions)


def _request(query: MaintainedQuery, catalog: Catalog) -> AddView:
    tables = [encode_table(catalog.tables[table_id]) for table_id, _ in query.tables if table_id >= 0]
    named = tuple(table_id for table_id, _ in query.tables if table_id < 0)
    return AddView(query.name, query.node, query.key, tables, query.order, query.names, query.since, named)
