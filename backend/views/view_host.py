"""The maintained views of one worker: the dataflow engine over the shard's base tables.

Views are known by a name that whoever asks for them makes from their definition, so the same query from any adapter is the
same view. They come when first asked for, live in memory only, and go when a table below them loses what they use or a
restart empties the worker: whoever misses one sends its definition again.

The engine is always at the epoch of `source`: an epoch's changes and the state that contains
them are handed over together, after the epoch is durable and before its writers hear of it.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from backend.network.program_messages import AddView
from backend.network.view_messages import HostedViews
from backend.shared_memory.publication import Edited, Publisher
from backend.shared_memory.segment import SegmentNames
from backend.views.hosted_view import HostedView, definition_of, hosted_view, status_of
from backend.views.known_view import KnownView, known_view
from backend.views.set_aside import HeldUp, SetAsideViews, reason_of, severity
from backend.views.small_tables import SmallTables, is_too_large
from backend.views.table_use import TableChanges, TableUse
from backend.views.view_filling import PARTIAL, ROWS_AT_ONCE_MAX, Fill, Fills, Runner, StillFilling, Stuck
from backend.views.view_limit import ViewLimit
from backend.views.view_range import EncodedRange
from backend.views.view_reading import ViewReading
from backend.views.view_restarting import restarting, stored_bytes
from backend.views.view_use import ViewUse
from backend.views.worker_views import ShownViews
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.large_writes import LargeWrites
from dataflow.expressions.source import Key
from dataflow.runtime.engine import CannotFollow, Engine, View
from dataflow.runtime.loading import Budget, OutOfMemory, OverBudget
from dataflow.schema import Table
from dataflow.state.clock import MemoryReport
from dataflow.state.delta import Delta
from dataflow.values.types import Row
from persistence.shard_store import ShardStore
from persistence.view import StateView

log = logging.getLogger(__name__)


class ViewHost:
    def __init__(
        self, store: ShardStore, memory_bytes: int, names: SegmentNames | None = None, runner: Runner | None = None
    ) -> None:
        """With `names`, views are shared on this machine; with `runner`, what takes long to fill is filled there."""
        self._fills = None if runner is None else Fills(runner, lambda: (self.engine.epoch, self._source.state), self._finish, self._fail)
        self._store = store
        self._names = names
        self._publisher = Publisher(names)
        self._reading = ViewReading(self._publisher, self._fill)
        self._limit = ViewLimit()
        self._used = ViewUse()
        self.small = SmallTables()
        self._memory_bytes = memory_bytes
        self.memory = MemoryReport(0, 0, 0, False)  # what the views took when it was last looked at
        self._aside = SetAsideViews()
        self.hung: frozenset[bytes] = frozenset()  # see `backend.views.hung_views`
        self.idle_s = math.inf  # views that nobody has used for so long go, unless they read named ones
        self._is_writing = False
        self._start_anew()

    def close(self) -> None:
        """Nothing is shared any more."""
        if self._fills is not None:
            self._fills.close()
        self._publisher.close()
        if self._names is not None:
            self._names.close()

    def _start_anew(self) -> None:
        for fill in self._under_way():
            self._fills.abandon(fill)  # type: ignore[union-attr]
        self._publisher.close()
        self._use = TableUse(self._store, is_all=True)
        self._source = self._use.source
        self.engine = Engine(self._source, partial=PARTIAL, clock=time.perf_counter)
        self.views: dict[bytes, HostedView] = {}
        self._leaving: dict[bytes, HostedView | Fill] = {}
        """Views that start anew after the epoch that is followed."""
        self._deltas: dict[int, Delta] = {}
        self._edited: list[Edited] = []
        self._failed: Mapping[View, Exception] = {}
        """Views that have missed changes of the epoch that is followed."""

    # --- views come and go

    def add(self, message: AddView, versions: Mapping[int, int]) -> bool:
        """Host a view; False if it cannot be: what it reads is defined otherwise by now, or it cannot be computed.

        Or not yet: a view that takes long to fill is there once it is asked for again after that.
        """
        name = message.view
        if name in self.views or name in self._aside or self.filling(name) is not None:
            return name in self.views
        known = known_view(message)
        if known.is_stale(versions):
            return False
        if not self._use:
            self._source.advance(self._store.view())
        known.learn(self._source)
        if is_too_large(known.definition, self._source, stored_bytes(self._store, known.tables), self._room_bytes):
            return False
        if not self._make(known, self._budget()):
            return False
        self._use.begin(known.layouts)
        return name in self.views

    def _make(self, known: KnownView, budget: Callable[[int], None]) -> bool:
        """Have the view, or begin to fill it; False if it is refused."""
        name = known.name
        try:
            if name in self.hung:
                raise HeldUp
            with self.engine.spending(budget):
                made = self.engine.add_view(*known.definition, full=self.small.reason(known.definition, self._source))
        except OverBudget:
            self._begin(known, ())
        except Exception as error:
            self._aside.add(known, reason_of(error), level=severity(error))
            return False
        else:
            self._host(known, made)
        return True

    def _host(self, known: KnownView, view: View) -> None:
        self.views[known.name] = hosted_view(known, view)
        log.info("view %s is %s, %d views", known.name.hex(), view.reason or "partial", len(self.views))

    def remove(self, name: bytes) -> None:
        hosted = self.views.pop(name, None)
        if hosted is not None:
            self._publisher.end(hosted.view)
            self.engine.remove_view(hosted.view)
            self._use.end(hosted.known.layouts)
        for fill in [fill for fill in self._under_way() if fill.name == name]:
            self._end_fill(fill)

    def _end_fill(self, fill: Fill) -> None:
        self._fills.abandon(fill)  # type: ignore[union-attr]
        if not fill.keys:
            self._use.end(fill.known.layouts)

    def tables_changed(self, versions: Mapping[int, int], tables: Mapping[int, Table] = MappingProxyType({})) -> None:
        """Drop the views over named views that are gone, and over tables that are, or lack what a view uses. `tables` are those that have changed."""
        self._aside.tables_changed(versions)
        for fill in self._under_way():
            if fill.known.is_stale(versions):
                self._end_fill(fill)
        for name, hosted in list(self.views.items()):
            known = hosted.known.current(versions, tables)
            if known is None:
                self.remove(name)
            elif known is not hosted.known:
                hosted.known = known
                known.learn(self._source)

    # --- fills that take long

    def _under_way(self) -> list[Fill]:
        return [] if self._fills is None else list(self._fills.under_way)

    def filling(self, name: bytes) -> Fill | None:
        """The fill of a view that is not there yet."""
        return None if self._fills is None else self._fills.find(name)

    def _room_bytes(self) -> int:
        return self._memory_bytes - self.engine.measure().full_bytes

    def _budget(self) -> Callable[[int], None]:
        return Budget(ROWS_AT_ONCE_MAX if self._fills is not None else sys.maxsize)

    def _begin(self, known: KnownView, keys: Sequence[Key]) -> Fill:
        assert self._fills is not None
        fill = Fill(known, keys, self._source.copy(known.layouts), self._room_bytes())
        log.info("view %s is filled from epoch %d%s", known.name.hex(), self._source.state.epoch, ", some keys" if keys else "")
        self._fills.begin(fill)
        return fill

    def _finish(self, fill: Fill) -> None:
        """What was filled is at the engine's epoch."""
        if fill.keys:
            self.engine.take_over(fill.engine)
            self.views[fill.name].misses += len(fill.keys)
            self.views[fill.name].filled(time.perf_counter() - fill.began)
        else:
            self._host(fill.known, self.engine.add_view(*fill.known.definition, prepared=fill.engine))

    def _fail(self, fill: Fill, error: Exception) -> None:
        if not fill.keys:
            self._aside.add(fill.known, reason_of(error), level=severity(error))
            self._use.end(fill.known.layouts)
            return
        log.warning("keys of view %s cannot be filled: %r", fill.name.hex(), error)
        if isinstance(error, OutOfMemory | Stuck):
            self.views[fill.name].too_large.update(fill.keys)

    def _fill(self, name: bytes, hosted: HostedView, keys: Sequence[Row], patient: bool = True) -> list[Key] | None:
        """Have these keys, as index keys; None if there is no room for them. If it takes longer, StillFilling, or None without `patient`."""
        view, kept = hosted.view, hosted.view.arrangement.index
        wanted = [view.index_key(values) for values in keys]
        filling = [fill for fill in self._under_way() if fill.name == name and not fill.keys.isdisjoint(wanted)]
        if filling and patient:
            raise StillFilling(filling[0])
        if filling or not hosted.too_large.isdisjoint(wanted):
            return None
        before, began = len(kept), time.perf_counter()
        try:
            with self.engine.spending(self._budget()):
                self.engine.fill(view, wanted)
        except OverBudget:
            if not patient:
                return None
            missing = [key for key in wanted if key not in kept]
            fill = self._begin(hosted.known, missing)
            raise StillFilling(fill) from None
        finally:
            filled = max(len(kept) - before, 0)
            if filled:
                hosted.misses += filled
                hosted.filled(time.perf_counter() - began)
        hosted.hits += len(wanted) - filled
        return wanted

    # --- reading

    def lookup(self, name: bytes, keys: bytes) -> list[bytes] | None:
        """The rows of each key, encoded, as of now; None if there is no such view."""
        return None if (found := self.lookup_shared(name, keys)) is None else found[0]

    def lookup_shared(
        self, name: bytes, keys: bytes, part: EncodedRange | None = None
    ) -> tuple[list[bytes], str] | None:
        """As `lookup`, with the name of the file where these keys can be read from now on, or ''.

        With `part`, only the rows in that range.
        """
        hosted = self.views.get(name)
        return None if hosted is None else self._reading.lookup(self.engine, name, hosted, keys, part)

    def lookup_each(self, name: bytes, keys: bytes) -> tuple[list[bytes | None], str] | None:
        """As `lookup_shared` for keys that have nothing to do with each other: None for those that take long."""
        hosted = self.views.get(name)
        return None if hosted is None else self._reading.lookup_each(self.engine, name, hosted, keys)

    # --- epochs

    def changes(self, epoch: PersistEpoch) -> TableChanges:
        """What the writes of an epoch, not yet stored, change in the tables that views use."""
        self._is_writing = True
        return self._use.changes(epoch)

    def apply(self, changes: TableChanges, wait: Callable[[], None] = lambda: None) -> int:
        """The epoch is stored, or is after `wait`: bring the views up to it. Returns how many rows have gone through them.

        A change that some view cannot compute (a value out of range, say) must not hold up the
        epoch: that view is set aside.
        """
        if not self.begin(changes, wait):
            return 0
        try:
            self.follow(changes)
        except Exception as error:
            return self.end(changes, wait, error)
        return self.end(changes, wait, None)

    def begin(self, changes: TableChanges, wait: Callable[[], None]) -> bool:
        """The first step of `apply`: False if it is the last, as nothing changes in the views."""
        self._is_writing = False
        if not changes or not self._use:
            wait()
            if self._use:
                self._source.advance(self._store.view())
            return False
        self._source.advance(lambda: self._stored(wait))
        return True

    def follow(self, changes: TableChanges) -> None:
        """The second step, which takes long if much has changed: in any thread, while nobody else uses the views."""
        tables = None
        if changes.large is not None and self._fills is not None:
            self._leave(changes.large[0])
            tables = frozenset(table for name, each in self._all().items() if name not in self._leaving for table in each.known.layouts)
        seen = self.engine.graph.seen_columns
        # What is being filled may look at more.
        self._deltas = self._use.deltas(changes, (lambda table: None) if self._under_way() else seen, tables)
        try:
            self.engine.apply(changes.epoch, self._deltas)
        except CannotFollow as failed:
            self._failed = failed.views
        self._edited = self._publisher.edit(self.engine, self._deltas)

    def end(self, changes: TableChanges, wait: Callable[[], None], error: Exception | None) -> int:
        """The third step: everything shows the epoch."""
        deltas, self._deltas = self._deltas, {}
        edited, self._edited = self._edited, []
        for fill in self._under_way():
            if fill.name in self._leaving:
                self._fills.abandon(fill)  # type: ignore[union-attr]
        if self._under_way():
            self._fills.collect(deltas)  # type: ignore[union-attr]
        if error is not None:
            wait()
            self._recover(error)
        failed, self._failed = self._failed, {}
        for name in [name for name, hosted in self.views.items() if hosted.view in failed]:
            self._set_aside(name, failed[self.views[name].view])
        assert self._source.state.epoch == changes.epoch, "views are shown before their epoch is stored"
        self._publisher.show(edited)
        leaving, self._leaving = self._leaving, {}
        for left in leaving.values():
            if not self._make(left.known, Budget(0)):
                self._use.end(left.known.layouts)
        return sum(map(len, deltas.values()))

    def _set_aside(self, name: bytes, error: Exception) -> None:
        hosted = self.views[name]
        log.log(severity(error), "view %s cannot follow an epoch", name.hex(), exc_info=error)
        self._aside.add(hosted.known, reason_of(error), definition_of(hosted.view), severity(error))
        self.remove(name)

    def _recover(self, error: Exception) -> None:
        """What has changed cannot be told, so the state is that of no epoch: all views begin anew."""
        views = self.views | {name: left for name, left in self._leaving.items() if isinstance(left, HostedView)}
        log.log(severity(error), "%d views begin anew", len(views), exc_info=error)
        broken = self.engine
        self._start_anew()
        for hosted in views.values():
            hosted.known.learn(self._source)
            if self._make(hosted.known, self._budget()):
                self._use.begin(hosted.known.layouts)
        broken.close()

    def _leave(self, large: LargeWrites) -> None:
        """Take down the views that start anew after the epoch."""
        every = self._all()
        for name in restarting(every, large, self._store):
            log.info("view %s starts anew after a large transaction", name.hex())
            self._leaving[name] = every[name]
            hosted = self.views.pop(name, None)
            if hosted is not None:
                self._publisher.end(hosted.view)
                self.engine.remove_view(hosted.view)

    def _all(self) -> dict[bytes, HostedView | Fill]:
        """The views that are there, and those that are to come."""
        return {**{fill.name: fill for fill in self._under_way() if not fill.keys}, **self.views}

    def _stored(self, wait: Callable[[], None]) -> StateView:
        wait()
        return self._store.view()

    def enforce_limit(self) -> None:
        """Evict cold keys until the views fit the memory they may take."""
        self.memory = self._limit.enforce(self.engine, self._publisher, self._memory_bytes, self._evict)

    def _evict(self, limit_bytes: int) -> MemoryReport:
        report = self.engine.enforce(limit_bytes)
        self._publisher.publish(self.engine)
        return report

    # --- for those who want to know

    def kept_and_idle(self) -> tuple[list[bytes], list[bytes]]:
        """The views that are there or on the way, and those of them that are to go."""
        self._used.used(self._used.newly_used(self.views, self._publisher))
        idle = self._used.idle(self.views, self.idle_s)
        return list(self._all()), [*idle, *self.small.outgrown(self.views)]

    def shown(self) -> ShownViews:
        return ShownViews(self._source.state.epoch, self.views, self.engine, self._publisher)

    def status(self) -> HostedViews:
        """What is kept, with sizes measured on samples."""
        found = status_of(self.views, [fill.status() for fill in self._under_way()], self._publisher.groups, self.engine.meter)
        return replace(found, views=[*found.views, *self._aside.status()])
