"""The only worker of a cluster: the same messages as `ShardWorker`, the fast path of `Engine`.

With one shard nothing needs to be exchanged, so an epoch is over when its message is handled.
"""

from __future__ import annotations

from dataflow.delta import rows_of
from dataflow.engine import Engine, View
from dataflow.eviction import Evictor
from dataflow.shard_messages import (
    AddView,
    BeginEpoch,
    Bundle,
    Effect,
    EpochApplied,
    EpochWanted,
    EvictKeys,
    LimitMemory,
    MemoryLimited,
    Reset,
    ToWorker,
    Transition,
    Upquery,
    UpqueryAnswered,
    UpqueryRefused,
    ViewName,
)
from dataflow.shard_worker import ShardWorker
from dataflow.source import Key
from dataflow.upquery import BaseSource


class LocalWorker:
    def __init__(self, source: BaseSource) -> None:
        self.source = source
        self.engine = Engine(source)
        self.views: dict[ViewName, View] = {}
        self._upqueries: list[Upquery] = []
        self._evictions: list[EvictKeys] = []
        self._limit_bytes: int | None = None

    @property
    def is_idle(self) -> bool:
        return True

    def owner(self, key: Key) -> int:
        return 0

    def handle(self, message: ToWorker) -> list[Effect]:
        match message:
            case BeginEpoch():
                return self._epoch(message)
            case Upquery():
                self._upqueries.append(message)
                return [EpochWanted()]
            case EvictKeys():
                self._evictions.append(message)
            case LimitMemory(limit_bytes):
                self._limit_bytes = limit_bytes
            case Reset():
                self.engine.close()
                self.engine = Engine(self.source)
                self.views = {}
                refused, self._upqueries = self._upqueries, []
                return [UpqueryRefused(each.request) for each in refused]
            case Bundle():
                raise AssertionError("there is no other shard")
        return []

    def _epoch(self, message: BeginEpoch) -> list[Effect]:
        self.engine.apply(message.epoch, message.changes)
        for transition in message.transitions:
            self._transition(transition)
        effects: list[Effect] = [*self._answers(message.epoch)]
        effects += self._make_room()
        numbers = {view.number: number for number, view in self.views.items()}
        touched = tuple(
            (numbers[view.number], frozenset(keys).union(amended)) for view, keys, amended in self.engine.take_touched()
        )
        return [*effects, EpochApplied(message.epoch, touched)]

    def _transition(self, transition: Transition) -> None:
        if isinstance(transition, AddView):
            self.views[transition.view] = self.engine.add_view(transition.node, transition.key)
        else:
            self.engine.remove_view(self.views.pop(transition.view))

    def _answers(self, epoch: int) -> list[Effect]:
        asked, self._upqueries = self._upqueries, []
        answers: list[Effect] = []
        for each in asked:
            view = self.views.get(each.view)
            if view is not None:
                self.engine.fill(view, each.keys)
                found = [view.arrangement.index.get(key) for key in each.keys]
                rows = tuple(() if value is None else tuple(rows_of(view.arrangement.bag(value))) for value in found)
                answers.append(UpqueryAnswered(each.request, epoch, rows))
            else:
                answers.append(UpqueryRefused(each.request))
        return answers

    def _make_room(self) -> list[Effect]:
        evictor = Evictor(self.engine.graph)
        evictions, self._evictions = self._evictions, []
        for eviction in evictions:
            view = self.views.get(eviction.view)
            if view is not None and not view.is_full:
                self.engine.evict_keys(view, eviction.keys)
        limit, self._limit_bytes = self._limit_bytes, None
        return [] if limit is None else [MemoryLimited(self.engine.enforce(limit, evictor))]


Worker = LocalWorker | ShardWorker


def worker_of(shard: int, shard_count: int, source: BaseSource) -> Worker:
    """The state machine for one of `shard_count` shards."""
    return LocalWorker(source) if shard_count == 1 else ShardWorker(shard, shard_count, source)
