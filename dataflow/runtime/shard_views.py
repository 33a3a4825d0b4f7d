"""One shard's views within the epochs of a cluster: when they change, and when they are read.

`dataflow.commit.epochs` says which epoch the views are to be brought up to, `dataflow.runtime.shard_worker`
does it together with the other shards. In between, reads are answered: at once if all their
keys are here, else by an epoch of their own, which computes what is missing. Views that take long to compute are filled
beside the epochs (`dataflow.runtime.shard_fill`).

Invariants
- An answer is the state as of one epoch, never of the middle of one.
- A reader that names the epoch of its last answer is never answered from an earlier one, on
  whichever shard that was.
- Whatever waits is answered, or refused when the views are forgotten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dataflow.expressions.source import Key
from dataflow.plan.node import tables_of
from dataflow.runtime.engine import View
from dataflow.runtime.kept_views import NEVER, KeptReport, KeptTables, KeptViews
from dataflow.runtime.loading import OverBudget
from dataflow.runtime.shard_fill import (
    BeginFill,
    EndFill,
    FillTransition,
    FollowFill,
    HeldSource,
    ResumeFill,
    ShardFill,
    Work,
)
from dataflow.runtime.shard_messages import (
    BeginEpoch,
    Bundle,
    Effect,
    EpochApplied,
    LimitMemory,
    Outgoing,
    Reset,
    StepWanted,
    TakeViews,
    ToWorker,
    Transition,
    Upquery,
    UpqueryAnswered,
    UpqueryRefused,
    ViewName,
)
from dataflow.runtime.shard_worker import ShardWorker
from dataflow.state.delta import Delta, rows_of
from dataflow.values.types import Row


@dataclass(frozen=True, slots=True)
class Applied:
    """The views are at the epoch they were to be brought up to; comes after what is to be published and answered of it."""


@dataclass(frozen=True, slots=True)
class FailedViews:
    """These views cannot be kept; the coordinator has to be told."""

    generation: int
    error: Exception
    suspects: tuple[ViewName, ...] = ()
    """The views that may be to blame; if none, it was a change that could not be computed."""
    is_certain: bool = False
    """Whether it was the code of these views that failed."""


@dataclass(frozen=True, slots=True)
class RunBeside:
    """Do this beside everything else, and give `ShardViews.ran` what it returns or raises."""

    fill: ShardFill
    work: Work


@dataclass(frozen=True, slots=True)
class FillReached:
    """This shard's part of a fill is at an epoch, and so many changed rows have come since; shard 0 has to be told."""

    fill: int
    behind: int


@dataclass(frozen=True, slots=True)
class FailedFill:
    """This shard's part of a fill cannot go on; shard 0 has to be told."""

    fill: int
    error: Exception
    suspects: tuple[ViewName, ...] = ()
    is_certain: bool = False


ViewEffect = Effect | Applied | FailedViews | RunBeside | FillReached | FailedFill
Reading = Callable[[int], tuple[Row, ...]]
"""The wanted rows of the key at this place of a lookup, which is filled."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    request: int
    view: ViewName
    keys: tuple[Key, ...]
    least_epoch: int
    read: Reading | None


class ShardViews:
    def __init__(
        self, shard: int, shard_count: int, source: HeldSource, room_bytes: Callable[[], int] = lambda: sys.maxsize,
        clock: Callable[[], float] | None = None, stored_epoch: int = 0,
    ) -> None:  # fmt: skip
        """`room_bytes` says how much memory a fill may take; `clock` how long operators take. The source is as of `stored_epoch`."""
        self.worker = ShardWorker(shard, shard_count, source, clock=clock)
        self.fill: ShardFill | None = None
        """The one that is under way."""
        self._source = source
        self._room_bytes = room_bytes
        self._early: list[Bundle] = []
        """Bundles of a fill that has not begun here."""
        self._held: BeginEpoch | None = None
        """The epoch in which a fill is taken over, until that is at the same epoch."""
        self._taken: ShardFill | None = None
        self.epoch = 0
        """The epoch that the views show."""
        self.last_fill = 0
        """The last that has begun."""
        self.kept: KeptViews | None = None
        """What is left of views that have ended because a shard was lost."""
        self.tables = KeptTables(source.state, stored_epoch)
        self._unchanged_until = 0
        self._applying = False
        self._failed = False
        self._waiting: list[_Lookup] = []
        self._filling: dict[int, _Lookup] = {}
        """Lookups of parts of keys, which can be read once the keys are filled."""

    @property
    def generation(self) -> int:
        return self.worker.generation

    @property
    def views(self) -> dict[ViewName, View]:
        return self.worker.views

    @property
    def is_applying(self) -> bool:
        return self._applying

    @property
    def wants_epoch(self) -> bool:
        return not self._failed and self.worker.wants_epoch

    def passed(self, epoch: int) -> None:
        """All shards have stored an epoch that changes nothing in the tables of the views."""
        self._unchanged_until = epoch

    def report(self) -> KeptReport:
        """What is kept, for shard 0 to decide about."""
        epoch, until = (0, 0) if self.kept is None else (self.kept.epoch, self.kept.unchanged_until)
        return KeptReport(self.worker.shard, self.generation, epoch, until, self.tables.since)

    def forget_kept(self) -> None:
        """What is kept is not wanted, or not right any more."""
        self.tables.forget()
        if self.kept is not None:
            self.kept.engine.close()
            self.kept = None

    def start(self, generation: int, pending: Mapping[int, Delta]) -> list[ViewEffect]:
        """Let all views go; those to come are of this generation. What is right of them is kept, until all shards are here.

        `pending` are the changes of an epoch that is being stored, which the views have not been brought up to.
        """
        is_kept = bool(self.views) and not self._applying and not self._failed and not self.worker.registry.ended
        if self.views or self._applying or self._failed:
            self.forget_kept()
        if is_kept:
            until = max(self.epoch, self._unchanged_until)
            self.kept = KeptViews(self.epoch, until, self.worker.engine, tuple(self.worker.registry.starts.values()))
            self.tables = KeptTables(self._source.state, self.epoch)
            self.tables.collect(sum(map(len, pending.values())), lambda: pending)
        self._failed = False
        effects: list[ViewEffect] = [*self.worker.handle(Reset(generation, is_kept))]
        waiting, self._waiting = self._waiting, []
        self._filling.clear()
        self._abandon_fill()
        self._held = self._taken = None
        self._early = [each for each in self._early if each.generation >= generation]
        effects += [UpqueryRefused(each.request) for each in waiting]
        if self._applying:
            self._applying = False
            effects.append(Applied())
        return effects

    def apply(
        self, epoch: int, generation: int, changes: Mapping[int, Delta], transitions: tuple[Transition | FillTransition, ...]
    ) -> list[ViewEffect]:
        """Bring the views up to an epoch that is in the source by now, with the other shards."""
        if generation != self.generation:
            return [Applied()]
        self._applying = True
        if self.fill is not None:
            self.fill.collect(changes)
        own: list[Transition] = []
        failed: list[ViewEffect] = []
        is_held = False
        for each in transitions:
            match each:
                case BeginFill() | ResumeFill():
                    failed = self._begin_fill(epoch, each)
                case FollowFill() | EndFill(is_wanted=True):
                    if self.fill is not None:  # it may have gone with an earlier generation
                        self.fill.follow(epoch, self._source.state)
                        if isinstance(each, EndFill):
                            own.append(TakeViews(self.fill.views, self.fill.worker.engine))
                            is_held = True
                case EndFill():
                    self._abandon_fill()
                case _:
                    own.append(each)
        message = BeginEpoch(epoch, changes, tuple(own))
        if is_held:
            self._held = message
            return self._fill_work()
        return [*self._handle(message), *failed, *self._fill_work()]

    def receive(self, bundle: Bundle) -> list[ViewEffect]:
        if not bundle.fill:
            return self._handle(bundle)
        if self.fill is not None and bundle.fill == self.fill.number:
            self.fill.receive(bundle)
            return self._fill_work()
        if bundle.generation >= self.generation and bundle.fill > self.last_fill:
            self._early.append(bundle)
        return []

    # -- a fill beside the epochs

    def _begin_fill(self, epoch: int, begin: BeginFill | ResumeFill) -> list[ViewEffect]:
        self._abandon_fill()  # shard 0 has forgotten it, with an earlier generation
        worker, self.last_fill = self.worker, epoch
        source, resumed, changes = self._source, None, None
        if isinstance(begin, ResumeFill):
            part, changes = self._kept_part(begin)
            resumed = (begin.epoch, part)
            source = source.copy(frozenset(table for view in begin.views for table in tables_of(view.node)))
            source.advance(self.tables.state)
        keys = {each.view: worker.asked.large_keys(each.view) for each in begin.views}
        keys = {view: each for view, each in keys.items() if each}
        self.fill = ShardFill(
            epoch, self.generation, worker.shard, worker.shard_count, source, begin.views, self._room_bytes(), keys, resumed
        )
        for each in self._early:
            if each.fill == epoch:
                self.fill.receive(each)
        self._early = [each for each in self._early if each.fill > epoch]
        if isinstance(begin, ResumeFill):
            self.tables.forget()
            if changes is None:
                return self.fail_fill(RuntimeError("what was kept of the views is gone"))
            self.fill.collect(changes)
        return []

    def _kept_part(self, begin: ResumeFill) -> tuple[TakeViews, dict[int, Delta] | None]:
        """What this shard has for it, and what has changed in its tables since; None if it has not what it has reported."""
        kept, self.kept = self.kept, None
        if self.worker.shard in begin.lost:
            kept = None
        elif kept is None or kept.epoch != begin.epoch:
            self.tables.forget()
        changes = None if self.tables.since == NEVER else self.tables.changes()
        return TakeViews(begin.views, None if kept is None else kept.engine, begin.lost), changes

    def _abandon_fill(self) -> None:
        if self.fill is not None:
            self.fill.abandon()
            self.fill = None

    def _fill_work(self) -> list[ViewEffect]:
        work = None if self.fill is None else self.fill.next_work()
        return [] if self.fill is None or work is None else [RunBeside(self.fill, work)]

    def ran(self, fill: ShardFill, handled: Sequence[Effect], error: Exception | None) -> list[ViewEffect]:
        """A piece of work for a fill is done, or has raised."""
        fill.done()
        if fill is not self.fill:
            fill.abandon()
            return []
        if error is not None:
            return self.fail_fill(error)
        effects: list[ViewEffect] = [each for each in handled if isinstance(each, Outgoing)]
        if any(isinstance(each, EpochApplied) and each.epoch == fill.epoch for each in handled):
            if self._held is None:
                effects.append(FillReached(fill.number, fill.behind))
            else:
                held, self._held = self._held, None
                self.fill, self._taken = None, fill
                return [*effects, *self._handle(held)]
        return [*effects, *self._fill_work()]

    def fail_fill(self, error: Exception) -> list[ViewEffect]:
        """The fill under way cannot go on; it stays until shard 0 has all shards let it go. If an epoch waits for it, nothing goes on."""
        fill = self.fill
        if fill is None:
            return []
        fill.has_failed = True
        self.worker.asked.give_up(fill.keys)
        suspects, is_certain = fill.worker.blamed, fill.worker.is_culprit_known and not isinstance(error, ConnectionError)
        if self._held is not None:
            return self.fail(error, suspects, is_certain)
        return [FailedFill(fill.number, error, suspects, is_certain)]

    def limit_memory(self, limit_bytes: int) -> list[ViewEffect]:
        return [*self._handle(LimitMemory(limit_bytes)), StepWanted()]

    def lookup(
        self, request: int, view: ViewName, keys: tuple[Key, ...], least_epoch: int, read: Reading | None = None
    ) -> list[ViewEffect]:
        """Index keys of a view that live on this shard, as of `least_epoch` or later; with `read`, parts of them."""
        hosted = self.views.get(view)
        if hosted is None or self._failed:
            return [UpqueryRefused(request)]
        if self._applying or self.epoch < least_epoch:
            self._waiting.append(_Lookup(request, view, keys, least_epoch, read))
            return []
        arrangement = hosted.arrangement
        if any(self.worker.asked.is_too_large(view, key) for key in keys):
            return [UpqueryRefused(request)]
        arrangement.referenced.update(keys)
        found: list[tuple[Row, ...]] = []
        for place, key in enumerate(keys):
            value = arrangement.index.get(key)
            if value is None and not arrangement.full:
                if read is not None:
                    self._filling[request] = _Lookup(request, view, keys, least_epoch, read)
                return self._handle(Upquery(request, view, keys))
            if value is None:
                found.append(())
            else:
                found.append(tuple(rows_of(arrangement.bag(value))) if read is None else read(place))
        return [UpqueryAnswered(request, self.epoch, tuple(found))]

    def fail(self, error: Exception, blamed: tuple[ViewName, ...] = (), is_certain: bool = False) -> list[ViewEffect]:
        """These views cannot be kept; they stay where they are until the coordinator has all begin anew."""
        if self._failed:
            return []
        self._failed = True
        return [FailedViews(self.generation, error, blamed, is_certain)]

    def _handle(self, message: ToWorker) -> list[ViewEffect]:
        if self._failed:
            return []
        effects: list[ViewEffect] = []
        is_applied = False
        try:
            handled = self.worker.handle(message)
        except Exception as error:
            # The other shards wait for this one, until the coordinator has all of them begin anew.
            # More rows than can be had at once may be fewer the next time.
            is_certain = self.worker.is_culprit_known and not isinstance(error, OverBudget)
            return self.fail(error, self.worker.blamed, is_certain)
        for effect in handled:
            if isinstance(effect, UpqueryAnswered) and effect.request in self._filling:
                self._waiting.append(self._filling.pop(effect.request))
                continue
            if isinstance(effect, UpqueryRefused):
                self._filling.pop(effect.request, None)
            effects.append(effect)
            if isinstance(effect, EpochApplied):
                self.epoch, self._applying, is_applied = effect.epoch, False, True
        if is_applied:
            if self._taken is not None:
                self._taken.abandon()
                self._taken = None
            effects.append(Applied())
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                effects += self.lookup(each.request, each.view, each.keys, each.least_epoch, each.read)
        return effects
