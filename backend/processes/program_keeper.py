"""The leading controller's transitions: it plans new queries against the whole program, records them, and has the workers carry them out.

One transition is made at a time. What is asked meanwhile is the next one, however much it is; so whoever asks waits for the transition that
contains its query, which begins when the one under way is over. A transition is planned (`backend.views.program_plan`), then recorded (`controller.program`) and at the same
time told to shard 0, which has all shards make it. Who asked is answered when the workers have the views; the next transition waits for the record, too. When a leader dies in between, its successor hands the recorded
program to the workers, and has them let go what is not recorded. A view that is there already stays as it is, so a transition that is repeated has no effect.

Workers are handed the program again whenever one has come or moved, and queries over tables that have changed, where these have all
that the queries use. What their tables no longer serve goes, and so do views that nobody uses (the workers tell which), unless they read named views.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from backend.clustering.cluster import Cluster
from backend.execution.database import Database
from backend.network.messages import Message
from backend.network.program_messages import (
    AddView,
    AskTransitions,
    AskViewsInUse,
    ChangeViews,
    LatestTransitions,
    MaintainViews,
    PlanView,
    ShownTransition,
    ViewPlan,
    ViewsMaintained,
)
from backend.views.program_plan import ProgramPlan, plan_text
from controller.catalog import Catalog, decode_table, encode_table
from controller.program import QUERIES_MAX, MaintainedQuery, ProgramTransition, queries_left
from dataflow.errors import MillraceError

LOOK_S = 0.5
CHECK_S = 30.0
TELL_S = 20.0
"""How long shard 0 may take for a transition before the next one begins; views that are not there by then are handed over again."""
TRIES_MAX = 40
"""How often a query is handed over until the workers, which may still wait for others, have it."""
ABSENT_S = 300.0
"""A query that the workers have not had for so long cannot be maintained."""
VIEWS_AT_ONCE = 500
BYTES_AT_ONCE = 8 << 20
"""Limits of what is handed over in one transition."""
PLANNED_AT_ONCE = 10
"""After so many queries, whatever else waits has its turn."""
SHOWN_MAX = 500

log = logging.getLogger(__name__)


class TransitionRecord(Protocol):
    """Where transitions are recorded; see `controller.program.ProgramRecord`."""

    def load(self) -> list[ProgramTransition]: ...

    def record(self, transition: ProgramTransition) -> None: ...


class ProgramKeeper:
    """While it leads; `forget` when it begins to."""

    def __init__(self, cluster: Cluster, record: TransitionRecord, database: Database, idle_s: float) -> None:
        """`database` has the catalog; views may be idle for `idle_s`."""
        self._cluster = cluster
        self._record = record
        self._database = database
        self._check_s = min(max(idle_s / 4, LOOK_S), CHECK_S)
        self._one_at_a_time = asyncio.Lock()
        self._coming: asyncio.Future[Mapping[bytes, str]] | None = None
        """The transition that has not begun."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: dict[bytes, AddView] = {}
        self._leaving: set[bytes] = set()
        self.forget()

    def forget(self) -> None:
        """Whoever led before may have changed the program."""
        self._is_loaded = False
        self._number = 0
        self._queries: dict[bytes, MaintainedQuery] = {}
        self._plan = ProgramPlan(self._cluster.shard_count == 1)
        self._shown: deque[ShownTransition] = deque(maxlen=SHOWN_MAX)
        self._workers: object = None
        self._versions: Mapping[int, int] | None = None
        self._catalog_version = 0
        self._waiting: dict[bytes, MaintainedQuery] = {}
        self._tries = 0
        self._absent_since: dict[bytes, float] = {}
        self._checked = time.monotonic()

    # --- what others ask

    async def answer(self, message: MaintainViews | PlanView | AskTransitions) -> Message:
        match message:
            case MaintainViews():
                return ViewsMaintained(await self.maintain(message.views))
            case PlanView():
                return await self.plan(message.view)
            case AskTransitions():
                return LatestTransitions(await self.transitions())

    async def maintain(self, views: Sequence[AddView]) -> list[bytes]:
        """Have these in the program, by one transition; those of them that the workers have then."""
        self._asked |= {each.view: each for each in views}
        kept = await self._next()
        return [each.view for each in views if each.view in kept]

    async def plan(self, view: AddView) -> ViewPlan:
        async with self._one_at_a_time:
            await self._load()
            return self._plan.look(view)

    async def transitions(self) -> list[ShownTransition]:
        async with self._one_at_a_time:
            await self._load()
            return list(self._shown)

    # --- transitions

    async def _next(self) -> Mapping[bytes, str]:
        """Those of the views asked for that are there after the transition, and why each is full."""
        if self._coming is None:
            self._coming = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(self._make(self._coming))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(self._coming)

    async def _make(self, told: asyncio.Future[Mapping[bytes, str]]) -> None:
        """Make the transition that is coming, when none is under way; `told` is what the workers have then."""
        async with self._one_at_a_time:
            self._coming = None
            try:
                await self._transition(told)
            except Exception as error:
                self._is_loaded = False  # what is planned is not what is recorded, as far as is known
                if told.done():
                    log.warning("a transition is not recorded: %s", error)
                else:
                    told.set_exception(error)
                    told.exception()  # whoever asked may have gone

    async def _transition(self, told: asyncio.Future[Mapping[bytes, str]]) -> None:
        asked, self._asked = self._asked, {}
        leaving, self._leaving = self._leaving, set()
        await self._load()
        removed = [name for name in leaving if name in self._queries and name not in asked]
        views, added, planned = await self._planned(asked.values(), removed)
        recorded = None
        if added or removed:
            transition = ProgramTransition(self._number + 1, time.time(), tuple(added), tuple(removed))
            recorded = asyncio.ensure_future(asyncio.to_thread(self._record.record, transition))
            self._number = transition.number
            self._queries = queries_left([ProgramTransition(0, 0.0, tuple(self._queries.values()), ()), transition])
        try:
            told.set_result(await self._tell(views, [name for name in leaving if name not in asked]))
        finally:
            if recorded is not None:
                await recorded
                self._shown.append(_shown(transition, planned))
                log.info("transition %d: %d views come, %d go", transition.number, len(added), len(removed))

    async def _load(self) -> None:
        if self._is_loaded:
            return
        transitions = await asyncio.to_thread(self._record.load)
        catalog = await self._newest_catalog()
        self._number = transitions[-1].number if transitions else 0
        self._queries, self._plan = queries_left(transitions), ProgramPlan(self._cluster.shard_count == 1)
        self._shown.clear()
        for each in transitions:
            plans = [self._replanned(query, catalog) for query in each.added if query.name in self._queries]
            self._shown.append(_shown(each, [plan for plan in plans if plan]))
            await asyncio.sleep(0)
        self._is_loaded = True

    def _replanned(self, query: MaintainedQuery, catalog: Catalog) -> str:
        try:
            return plan_text(self._plan.add(_request(query, catalog))) if query.is_current(catalog) else ""
        except MillraceError:
            return ""

    async def _planned(self, asked: Iterable[AddView], removed: Sequence[bytes]) -> tuple[list[AddView], list[MaintainedQuery], list[str]]:
        """Those that the workers are told of, those of them that are new, and what is planned for these."""
        for name in removed:
            self._plan.remove(name)
        told: list[AddView] = []
        added: list[MaintainedQuery] = []
        planned: list[str] = []
        for number, each in enumerate(asked, 1):
            known = self._queries.get(each.view)
            since = time.time() if known is None else known.since
            view = AddView(each.view, each.node, each.key, each.tables, each.order, each.names, since, each.named)
            if known is None:
                if len(self._queries) + len(added) >= QUERIES_MAX:
                    log.warning("the program has %d queries; another one is not maintained", QUERIES_MAX)
                    continue
                try:
                    planned.append(plan_text(self._plan.add(view)))
                except MillraceError as error:
                    log.info("view %s cannot be maintained: %s", view.view.hex(), error)
                    continue
                added.append(_query(view))
            told.append(view)
            if number % PLANNED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return told, added, planned

    async def _tell(self, added: Sequence[AddView], removed: Sequence[bytes]) -> Mapping[bytes, str]:
        """Have the workers make it. What cannot be told now is handed over later."""
        if not added and not removed:
            return {}
        kept: Mapping[bytes, str] = {}
        try:
            async with asyncio.timeout(TELL_S):
                kept = (await self._cluster.ask_now(0, ChangeViews(self._number, list(added), list(removed)))).views
        except (MillraceError, TimeoutError) as error:
            log.info("a transition is carried out later: %r", error)
        for each in added:
            if each.view not in kept:
                if each.view not in self._waiting:
                    self._tries = 0
                self._waiting[each.view] = self._queries[each.view]
                continue
            self._waiting.pop(each.view, None)
            if (full := kept[each.view]) != self._plan.reason(each.view):  # its tables are small, which the workers know
                self._plan.add(each, full)
        return kept

    # --- the workers

    async def look(self) -> None:
        """To be called again and again while this process leads."""
        cluster = self._cluster
        try:
            if not self._is_loaded:
                async with self._one_at_a_time:
                    await self._load()
            workers = dict(cluster.addresses)
            if workers != self._workers and len(workers) == cluster.shard_count:
                self._workers, self._tries = workers, 0
                self._waiting = dict(self._queries)
                if self._waiting:
                    log.info("%d queries are to be maintained again", len(self._waiting))
            if self._catalog_version != self._database.catalog.version:
                self._follow(self._database.catalog)
            if self._waiting:
                await self._hand_over(await self._newest_catalog())
            elif time.monotonic() - self._checked > self._check_s:
                self._checked = time.monotonic()
                await self._check(await self._newest_catalog())
            if self._leaving:
                await self._next()
        except MillraceError as error:
            log.info("the program waits: %s", error)

    async def _newest_catalog(self) -> Catalog:
        await self._database.refresh_catalog()
        return self._database.catalog

    def _follow(self, catalog: Catalog) -> None:
        """Definitions have changed: what workers may have let go for that is handed over again."""
        before, versions = self._versions or catalog.versions, catalog.versions
        self._catalog_version, self._versions = catalog.version, versions
        changed = {each for each, version in versions.items() if before.get(each) != version}
        waiting = [query for query in self._queries.values() if not changed.isdisjoint([each for each, _ in query.tables])]
        if waiting:
            log.info("%d queries are maintained over tables that have changed", len(waiting))
            self._waiting |= {each.name: each for each in waiting}
            self._tries = 0
        self._leaving |= {name for name, query in self._queries.items() if not query.is_current(catalog)}

    async def _hand_over(self, catalog: Catalog) -> None:
        self._tries += 1
        if self._tries > TRIES_MAX:
            self._waiting.clear()
        views: list[AddView] = []
        size = 0
        for query in [each for each in self._waiting.values() if each.is_current(catalog) and each.name in self._queries]:
            views.append(view := _request(query, catalog))
            size += len(view.node) + sum(map(len, view.tables))
            if size > BYTES_AT_ONCE or len(views) == VIEWS_AT_ONCE:
                await self.maintain(views)
                views, size = [], 0
        if views:
            await self.maintain(views)
        self._waiting = {name: each for name, each in self._waiting.items() if name in self._queries and each.is_current(catalog)}

    async def _check(self, catalog: Catalog) -> None:
        """Have go what is out of date, or gone, or not used."""
        number = self._number
        found = await self._cluster.ask_now(0, AskViewsInUse())
        if self._coming is not None or self._one_at_a_time.locked() or number != self._number:
            return  # there is another transition by now
        now, kept = time.monotonic(), {*found.views}
        absent = [name for name, query in self._queries.items() if not query.names and name not in kept]
        self._absent_since = {name: self._absent_since.get(name, now) for name in absent}
        self._leaving |= {name for name, since in self._absent_since.items() if now - since > ABSENT_S}
        self._leaving |= {name for name, query in self._queries.items() if not query.is_current(catalog)}
        self._leaving |= {*found.idle}
        self._leaving |= kept - self._queries.keys()


def _shown(transition: ProgramTransition, planned: Sequence[str]) -> ShownTransition:
    gone = [f"view {name.hex()} goes" for name in transition.removed]
    added = [each.name for each in transition.added]
    return ShownTransition(transition.number, transition.moment, added, list(transition.removed), "\n".join([*planned, *gone]))


def _query(view: AddView) -> MaintainedQuery:
    tables = [(table.id, table.version) for table in map(decode_table, view.tables)]
    versions = tuple(sorted([*tables, *[(each, 0) for each in view.named]]))
    return MaintainedQuery(view.view, view.node, view.key, view.order, versions, view.names, view.since)


def _request(query: MaintainedQuery, catalog: Catalog) -> AddView:
    tables = [encode_table(catalog.tables[table_id]) for table_id, _ in query.tables if table_id >= 0]
    named = tuple([table_id for table_id, _ in query.tables if table_id < 0])
    return AddView(query.name, query.node, query.key, tables, query.order, query.names, query.since, named)
