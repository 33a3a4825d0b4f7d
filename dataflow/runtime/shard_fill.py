"""One shard's part in filling views, or keys of them, beside the epochs, where that takes longer than an epoch may.

Such a fill has an engine of its own on each shard, over the stored state as of one epoch, after which it is numbered. It runs
in rounds of bundles of its own, which name the fill. What later epochs change is collected meanwhile; all shards then follow up to
a later epoch together, and so on, until so little is missing that the last of it is followed within an epoch, in which
the engines that answer take over what was filled. Shard 0 decides when; all shards are told by the epochs' transitions.

A fill that fails, or is not wanted any more, has touched nothing else. Its work is done one piece at a time, in a
thread perhaps; while a piece is under way, engine and source belong to whoever does it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dataflow.expressions.source import Key
from dataflow.plan.node import tables_of
from dataflow.runtime.loading import FillBudget
from dataflow.runtime.shard_messages import (
    BeginEpoch,
    Bundle,
    Effect,
    StartView,
    TakeViews,
    Transition,
    Upquery,
    ViewName,
)
from dataflow.runtime.shard_worker import ShardWorker
from dataflow.runtime.upquery import BaseSource
from dataflow.state.delta import Delta

Work = Callable[[], list[Effect]]


@dataclass(frozen=True, slots=True)
class BeginFill:
    """Fill these views from this epoch on; of those that are there already, the keys that are too large for an epoch."""

    views: tuple[StartView, ...]


@dataclass(frozen=True, slots=True)
class FollowFill:
    """Bring what was filled up to this epoch."""


@dataclass(frozen=True, slots=True)
class EndFill:
    """Bring it up to this epoch and take it over, if it `is_wanted`; else let it go."""

    is_wanted: bool


class HeldSource(BaseSource, Protocol):
    """A source that can be held as it is, while what it is a copy of goes on."""

    @property
    def state(self) -> Any:
        """What is read from."""
        ...

    def copy(self, tables: Iterable[int]) -> HeldSource:
        """These tables as they are now."""
        ...

    def advance(self, state: Any) -> None:
        """Read from this later state."""
        ...


@dataclass(frozen=True, slots=True)
class ResumeFill:
    """Fill these views from what was kept of them as of `epoch`, by all shards but those that were `lost` (`dataflow.runtime.kept_views`)."""

    views: tuple[StartView, ...]
    epoch: int
    lost: frozenset[int]


FillTransition = BeginFill | ResumeFill | FollowFill | EndFill


class ShardFill:
    def __init__(
        self, number: int, generation: int, shard: int, shard_count: int, source: HeldSource,
        views: tuple[StartView, ...], limit_bytes: int, keys: Mapping[ViewName, tuple[Key, ...]],
        resumed: tuple[int, TakeViews] | None = None,
    ) -> None:  # fmt: skip
        """`source` has the tables as of the epoch it is numbered after, or of that which is `resumed`. `keys` of some of the views are wanted that live here."""
        self.number, self.views, self.keys = number, views, keys
        self.epoch = number if resumed is None else resumed[0]
        """That it is brought up to."""
        self._transitions: tuple[Transition, ...] = views if resumed is None else (resumed[1],)
        self.tables = frozenset(table for view in views for table in tables_of(view.node))
        self.source = source.copy(self.tables)
        self.budget = FillBudget(lambda: self.worker.engine.measure().total_bytes, limit_bytes)
        self.worker = ShardWorker(shard, shard_count, self.source, number, self.budget)
        self.worker.generation = generation
        self.rounds = 0
        self.has_failed = False
        self._changes: dict[int, Delta] = {}
        self._waiting: deque[Work] = deque()
        self._following: deque[Work] = deque()
        """What is to be done when nothing before it is under way on this shard: the source is of one epoch at a time."""
        self._is_running = False
        self._pieces = 0
        first = self.epoch
        self._waiting.append(lambda: self._begin(first))

    def _begin(self, epoch: int) -> list[Effect]:
        for view, keys in self.keys.items():
            self.worker.handle(Upquery(0, view, keys))
        return self.worker.handle(BeginEpoch(epoch, {}, self._transitions))

    @property
    def behind(self) -> int:
        """How many changed rows of this shard wait for it."""
        return sum(map(len, self._changes.values()))

    def collect(self, changes: Mapping[int, Delta]) -> None:
        """A later epoch has changed these tables."""
        for table in self.tables & changes.keys():
            self._changes.setdefault(table, []).extend(changes[table])

    def follow(self, epoch: int, state: Any) -> None:
        """Take what was collected, up to an epoch whose stored state this is."""
        changes, self._changes = self._changes, {}
        self.epoch, self.rounds = epoch, self.rounds + 1

        def work() -> list[Effect]:
            self.source.advance(state)
            return self.worker.handle(BeginEpoch(epoch, changes))

        self._following.append(work)

    def receive(self, bundle: Bundle) -> None:
        self._waiting.append(lambda: self.worker.handle(bundle))

    def next_work(self) -> Work | None:
        """What is to be done next, if nothing is under way; `done` is to be called after it."""
        waiting = self._waiting or (self._following if self.worker.is_idle else ())
        if self._is_running or self.has_failed or not waiting:
            return None
        self._is_running = True
        return waiting.popleft()

    def done(self) -> None:
        self._is_running = False
        self._pieces += 1

    @property
    def progress(self) -> int | None:
        """What grows as long as somebody works on it here; None if nobody does."""
        return self.budget.rows + self._pieces if self._is_running else None

    def abandon(self) -> None:
        """It is not wanted any more: what is under way ends soon."""
        self.budget.abandoned = True
        self._waiting.clear()
        self._following.clear()
        if not self._is_running:
            self.worker.engine.close()
