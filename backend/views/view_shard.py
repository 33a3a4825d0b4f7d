"""One worker's part of the views that several workers keep together.

`dataflow.runtime.shard_views` decides; here tables are learnt and read, bundles are sent, and whoever
waits is answered. Views come and go by transitions (`backend.views.view_transitions`); what takes long is filled in a thread.

A view is refused where it cannot be computed, and while a shard is missing; who asks then
evaluates the query. A view that cannot be computed any more is set aside by shard 0 (`backend.views.set_aside`), and the others go on. Where that is not enough, as
when a shard is lost, all views are forgotten and begin anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType

from backend.network.bundles import decode_bundle, encode_bundle
from backend.network.messages import Lookup
from backend.network.miss_messages import LookupEach
from backend.network.transport import FRAME_BYTES_MAX, Peer
from backend.network.view_messages import EndedViews, FillReported, FillStatus, HostedViews
from backend.shared_memory.epoch_words import EpochWords
from backend.shared_memory.publication import Publisher
from backend.shared_memory.segment import SegmentNames, is_possible, remove_orphans
from backend.views.fill_runner import FillRunner
from backend.views.hosted_view import definition_of, hosted_view, status_of
from backend.views.hung_views import is_within
from backend.views.kept_share import KeptShare
from backend.views.known_view import KnownView
from backend.views.set_aside import HeldUp, reason_of, severity
from backend.views.shard_lookups import ShardLookups
from backend.views.table_use import TableUse
from backend.views.view_filling import Runner
from backend.views.view_limit import ViewLimit
from backend.views.view_restarting import require_few
from backend.views.view_transitions import OutliveTables, ViewTransitions, decoded
from backend.views.view_use import ViewUse
from backend.views.worker_views import Outside, ShownViews
from dataflow.commit.epoch_effects import ApplyEpoch, PersistEpoch, PreparedEpoch
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.expressions.source import Key
from dataflow.runtime import shard_messages, shard_worker
from dataflow.runtime.shard_fill import BeginFill, EndFill, FillTransition, ResumeFill, ShardFill
from dataflow.runtime.shard_messages import (
    EpochApplied,
    KeysTooLarge,
    MemoryLimited,
    Outgoing,
    StepWanted,
    UpqueryAnswered,
    UpqueryRefused,
    ViewName,
    ViewsEnded,
)
from dataflow.runtime.shard_views import (
    Applied,
    FailedFill,
    FailedViews,
    FillReached,
    RunBeside,
    ShardViews,
    ViewEffect,
)
from dataflow.state.clock import MemoryReport
from dataflow.state.delta import Delta
from persistence.shard_store import ShardStore

log = logging.getLogger(__name__)


class ViewShard:
    """Implements `dataflow.commit.epoch_flight.DueViews`."""

    def __init__(
        self,
        shard: int,
        shard_count: int,
        store: ShardStore,
        memory_bytes: int,
        outside: Outside,
        run: Runner,
        names: SegmentNames | None = None,
    ) -> None:
        """`run` fills views beside the epochs. With `names`, views are shared with other processes of this machine."""
        self._shard = shard
        self._publisher = Publisher(names)
        self._words = EpochWords(names) if names is not None and is_possible() else None
        self._shown_epoch = 0
        self._store = store
        self._memory_bytes = memory_bytes
        self._outside = outside
        self._use = TableUse(store, is_all=False)
        self._run = FillRunner(run, lambda *ran: self._carry_out(self._views.ran(*ran)), self._given_up)
        self._views = ShardViews(shard, shard_count, self._use.source, self._room_bytes, time.perf_counter, store.epoch)
        self.kept = KeptShare(store, self._use, self._views, outside.views_kept)
        self.transitions = ViewTransitions(store, shard_count, memory_bytes, outside.change_views, lambda: self._views.worker.engine)
        self._known, self._hosted = self.transitions.known, self.transitions.hosted
        self._leaving: list[KnownView] = []
        self._filling: list[bytes] = []
        """The views of the fill that is under way."""
        self._changes: tuple[int, dict[int, Delta]] = (0, {})
        self._lookups = ShardLookups(self._hosted, self._views, self._publisher, self._words, lambda: self._shown_epoch)
        self.hung: frozenset[bytes] = frozenset()  # see `backend.views.hung_views`
        self.memory = MemoryReport(0, 0, 0, False)
        self.use = ViewUse()
        self._limit = ViewLimit()
        self.on_shown: Callable[[], None] = lambda: None

    def _room_bytes(self) -> int:
        return self._memory_bytes - self._views.worker.engine.measure().full_bytes

    def close(self) -> None:
        """Nothing is shared any more."""
        self._run.close()
        self._publisher.close()
        if self._words is not None:
            self._words.close()

    # --- epochs

    def is_due(self, record: PreparedEpoch | None) -> bool:
        if self._views.wants_epoch:
            return True
        return record is not None and (
            self._use.is_touched(record.writes)
            or self._use.is_touched(puts.keys[0] for puts in record.new)
            or any(self._use.is_touched(each) for _, each in record.spanning)
            or (record.large is not None and bool(self._use))
        )

    def passed(self, epoch: int) -> None:
        self._views.passed(epoch)

    def collect(self, epoch: PersistEpoch) -> None:
        """Remember what the writes of an epoch change, before they are stored. Whatever fails here holds up no commit."""
        self.kept.collect(epoch)
        try:
            if epoch.large is not None:
                require_few([known.tables for known in self._known.values()], epoch.large[1])
            self._changes = (epoch.epoch, self._use.deltas(self._use.changes(epoch)))
        except Exception as error:
            self._changes = (epoch.epoch, {})
            self._carry_out(self._views.fail(error))

    def apply(self, effect: ApplyEpoch, versions: Mapping[int, int]) -> None:
        """`versions` are those that this shard's rows may have."""
        epoch, changes = self._changes
        self._use.source.advance(self._store.view())
        current = effect.generation == self._views.generation
        transitions = [self._transition(each) for each in effect.transitions] if current else []
        if current and any(known.is_stale(versions) for known in self._known.values()):
            self._carry_out(self._views.fail(RuntimeError("a table has changed while a view of it was on its way")))
        hung = tuple([name for name in self.hung if name in self._known])
        if hung:
            self._carry_out(self._views.fail(HeldUp(), hung, is_certain=True))
        own = changes if epoch == effect.epoch else {}
        self._carry_out(self._views.apply(effect.epoch, effect.generation, own, tuple([each for each in transitions if each is not None])))

    def _transition(self, payload: bytes) -> shard_messages.Transition | FillTransition | None:
        """What the dataflow is to do, None if nothing."""
        views, transition = decoded(payload)
        match transition:
            case OutliveTables():
                self.transitions.outlive(transition, self._use.source)
                return None
            case shard_messages.EndView(name):
                self._leave(bytes(name))
            case BeginFill() | ResumeFill() | EndFill(is_wanted=False):
                for each in self._filling:
                    if each not in self._hosted:
                        self._leave(each)
                self._filling = [each.name for each in views]
            case EndFill():
                self._filling = []
        for known in views:
            if known.name not in self._known:  # else it may be of later versions of its tables by now
                known.learn(self._use.source)
                self._use.begin(known.layouts)
                self._known[known.name] = known
                log.info("view %s, %d views", known.name.hex(), len(self._known))
        return transition

    def _leave(self, name: bytes) -> None:
        gone = self._known.pop(name, None)
        if gone is not None:
            self._leaving.append(gone)
            hosted = self._hosted.pop(name, None)
            if hosted is not None:
                self._publisher.end(hosted.view)

    def start(self, generation: int) -> None:
        """Let all views go: a shard was lost, or something failed.

        What a lost shard of this machine has left in shared memory must not pass for current
        once others commit without it.
        """
        self._publisher.close()
        remove_orphans()
        self._leaving.clear()
        self._filling = []
        self._use.end_all()
        epoch, pending = self._changes
        self._carry_out(self._views.start(generation, pending if epoch > self._views.epoch else {}))
        self.kept.started(generation, self._known)
        self.transitions.forget()

    def link_broken(self) -> None:
        """Bundles may be lost: who waits for one cannot go on."""
        error = ConnectionError("a connection between two workers has ended")
        if self._views.is_applying:
            self._carry_out(self._views.fail(error, ()))
        else:
            self._carry_out(self._views.fail_fill(error))

    def receive(self, payload: bytes) -> None:
        self._carry_out(self._views.receive(decode_bundle(payload)))

    def _carry_out(self, effects: list[ViewEffect]) -> None:
        for effect in effects:
            match effect:
                case Outgoing(to, bundle):
                    self._send(to, bundle)
                case EpochApplied(epoch, touched):
                    self._publish(epoch, touched)
                case Applied():
                    self._applied()
                case StepWanted():
                    self._outside.want_epoch()
                case UpqueryAnswered():
                    self._lookups.answer(effect)
                case UpqueryRefused(request):
                    self._lookups.refuse(request)
                case ViewsEnded():
                    self._ended(effect)
                case MemoryLimited(report):
                    self.memory = report
                case RunBeside(fill, work):
                    self._run(fill, work)
                case KeysTooLarge(views):
                    self._outside.keys_wanted([bytes(each) for each in views])
                case FillReached(number, behind):
                    self._outside.fill_reported(FillReported(self._shard, number, behind))
                case FailedFill(number, error, suspects, is_certain):
                    log.log(severity(error), "views cannot be filled: %s", error, exc_info=error)
                    names = tuple(map(bytes, suspects))
                    self._outside.fill_reported(FillReported(self._shard, number, 0, names, reason_of(error), is_certain))
                case FailedViews(generation, error, suspects, is_certain):
                    log.log(severity(error), "views cannot be kept: %s", error, exc_info=error)
                    self._failed(generation, suspects, reason_of(error), is_certain)

    def lookup(self, peer: Peer, request: int, message: Lookup | LookupEach) -> None:
        """Keys that live here."""
        self._carry_out(self._lookups.begin(peer, request, message))

    def _ended(self, ended: ViewsEnded) -> None:
        """These views have missed changes: they are not read any more, and shard 0 has all shards remove them."""
        definitions: list[tuple[bytes, str]] = []
        for name in map(bytes, ended.views):
            hosted = self._hosted.pop(name, None)
            definitions.append((name, "" if hosted is None else definition_of(hosted.view)))
            if hosted is not None:
                self._publisher.end(hosted.view)
        error = ended.error
        if error is not None:
            log.log(severity(error), "views cannot follow an epoch: %s", error, exc_info=error)
        if error is not None or not self._shard:
            self._outside.views_ended(EndedViews(definitions, "" if error is None else reason_of(error), ended.is_certain))

    def _given_up(self, fill: ShardFill, error: Exception) -> None:
        if fill is self._views.fill:
            self._carry_out(self._views.fail_fill(error))

    def fill_reported(self, report: FillReported) -> None:
        """On shard 0: what some shard says of its part of a fill."""
        self.transitions.fill_reported(report, self._views.last_fill)

    def landed(self, versions: Mapping[int, int]) -> None:
        """On shard 0: all shards are at the epoch."""
        self.transitions.landed(versions, self._views.fill is not None)

    def _failed(self, generation: int, suspects: tuple[ViewName, ...], reason: str, is_certain: bool) -> None:
        self._outside.views_failed(ViewsFailed(self._shard, generation, tuple(map(bytes, suspects)), reason, is_certain))

    def running(self, frame: FrameType) -> frozenset[bytes]:
        """The views whose code is running, if `frame` is where the event loop is; from any thread."""
        return frozenset(map(bytes, self._views.worker.blamed)) if is_within(frame, shard_worker.__name__) else frozenset()

    def _publish(self, epoch: int, touched: tuple[tuple[shard_messages.ViewName, frozenset[Key]], ...]) -> None:
        if self._words is not None:
            self._words.begin(epoch)
        for name, keys in touched:
            view = self._views.views.get(name)
            if view is not None:
                self._publisher.follow(self._views.worker.engine, view, keys)
        if self._words is not None:
            self._words.end(epoch)
            self._shown_epoch = epoch

    def _send(self, to: int, bundle: shard_messages.Bundle) -> None:
        payload = encode_bundle(bundle)
        if len(payload) < FRAME_BYTES_MAX - 1024:
            self._outside.send_bundle(to, payload)
        else:
            reason = f"views need {len(payload)} bytes of one shard at once, which is too much"
            log.error(reason)
            if bundle.fill:
                self._carry_out(self._views.fail_fill(ValueError(reason)))
                return
            self._failed(bundle.generation, self._views.worker.blamed, reason, is_certain=False)

    def _applied(self) -> None:
        for gone in self._leaving:
            self._use.end(gone.layouts)
        self._leaving.clear()
        for name, view in self._views.views.items():
            if name not in self._hosted:
                self._hosted[bytes(name)] = hosted_view(self._known[bytes(name)], view)
        self.on_shown()
        self._outside.views_applied()

    def shown(self) -> ShownViews | None:
        if self._views.is_applying:
            return None
        return ShownViews(self._views.epoch, self._hosted, self._views.worker.engine, self._publisher)

    def enforce_limit(self) -> None:
        """Have cold keys evicted in the next epoch if the views take too much memory."""
        self.kept.check()
        self._outside.views_used(self.use.newly_used(self._hosted, self._publisher))
        self.memory = self._limit.enforce(self._views.worker.engine, self._publisher, self._memory_bytes, self._evict)

    def _evict(self, limit_bytes: int) -> MemoryReport:
        engine = self._views.worker.engine
        report = engine.measure()
        if report.total_bytes > limit_bytes:
            self._carry_out(self._views.limit_memory(limit_bytes))
        else:
            engine.age()
        return report

    def status(self) -> HostedViews:
        fill = self._views.fill
        found = status_of(self._hosted, () if fill is None else [self._fill_status(fill, name) for name in self._filling])
        return replace(found, views=[*found.views, *self.transitions.aside.status()])

    def _fill_status(self, fill: ShardFill, name: bytes) -> FillStatus:
        tables = tuple(sorted(self._known[name].tables))
        return FillStatus(name, tables, 0, fill.epoch, fill.budget.rows, fill.rounds, fill.behind)
