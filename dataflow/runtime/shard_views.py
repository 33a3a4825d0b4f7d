"""One shard's views within the epochs of a cluster: when they change, and when they are read.

`dataflow.commit.epochs` says which epoch the views are to be brought up to, `dataflow.runtime.shard_worker`
does it together with the other shards. In between, reads are answered: at once if all their
keys are here, else by an epoch of their own, which computes what is missing.

Invariants
- An answer is the state as of one epoch, never of the middle of one.
- A reader that names the epoch of its last answer is never answered from an earlier one, on
  whichever shard that was.
- Whatever waits is answered, or refused when the views are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dataflow.expressions.source import Key
from dataflow.runtime.engine import View
from dataflow.runtime.loading import OverBudget
from dataflow.runtime.shard_messages import (
    BeginEpoch,
    Bundle,
    Effect,
    EpochApplied,
    LimitMemory,
    Reset,
    StepWanted,
    ToWorker,
    Transition,
    Upquery,
    UpqueryAnswered,
    UpqueryRefused,
    ViewName,
)
from dataflow.runtime.shard_worker import ShardWorker
from dataflow.runtime.upquery import BaseSource
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


ViewEffect = Effect | Applied | FailedViews
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
    def __init__(self, shard: int, shard_count: int, source: BaseSource) -> None:
        self.worker = ShardWorker(shard, shard_count, source)
        self.epoch = 0
        """The epoch that the views show."""
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

    def start(self, generation: int) -> list[ViewEffect]:
        """Forget all views; those to come are of this generation."""
        self._failed = False
        effects: list[ViewEffect] = [*self.worker.handle(Reset(generation))]
        waiting, self._waiting = self._waiting, []
        self._filling.clear()
        effects += [UpqueryRefused(each.request) for each in waiting]
        if self._applying:
            self._applying = False
            effects.append(Applied())
        return effects

    def apply(
        self, epoch: int, generation: int, changes: Mapping[int, Delta], transitions: tuple[Transition, ...]
    ) -> list[ViewEffect]:
        """Bring the views up to an epoch that is in the source by now, with the other shards."""
        if generation != self.generation:
            return [Applied()]
        self._applying = True
        return self._handle(BeginEpoch(epoch, changes, transitions))

    def receive(self, bundle: Bundle) -> list[ViewEffect]:
        return self._handle(bundle)

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
            effects.append(effect)
            if isinstance(effect, EpochApplied):
                self.epoch, self._applying, is_applied = effect.epoch, False, True
        if is_applied:
            effects.append(Applied())
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                effects += self.lookup(each.request, each.view, each.keys, each.least_epoch, each.read)
        return effects
