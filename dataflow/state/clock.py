"""The order of eviction: state that is cheapest to compute again leaves first, then the keys read longest ago.

Every check of the limit moves the keys that were read since the last one to the end of their
index, so an index is in the order of its keys' last reads, as of some check, and no mark is
kept with them. When memory is short, three kinds of state leave in this order:

1. *Caches*: arrangements that only save reading a table or computing a join again. Nobody
   depends on them, so they go alone, oldest first, but for a small part of the memory, in
   which keys that writes come back to stay for a while.
2. *Orphans*: state of an operator that nothing filled is made from any more.
3. *Keys of views* that were not read since the last check, longest unread first, each view
   giving its share; and with each key the state below it that nothing else needs.

What has come or was read since the last check goes only if that is not enough, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil

from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.eviction import Evictor
from dataflow.state.memory import INDEX_BYTES, Meter

LOOKS = 64
"""So many keys of each state below views are looked at in one go for whether something depends on them."""
NEAR = 0.5
"""From this part of the limit on, sizes are measured more often."""
CACHE_SHARE = 1 / 16
"""The part of the memory in which caches are older than the last check."""

Place = tuple[Operator, Arrangement]


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """`only_full_left`: the limit is passed and there is nothing left to evict."""

    partial_bytes: int
    full_bytes: int
    evicted_keys: int
    only_full_left: bool

    @property
    def total_bytes(self) -> int:
        return self.partial_bytes + self.full_bytes


class Clock:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.meter = Meter()
        self.meter.begin_check(is_near=False)

    def measure(self) -> MemoryReport:
        partial = full = 0
        for _, arrangement in self._arrangements():
            size = self.meter.bytes_of(arrangement)
            if arrangement.full:
                full += size
            else:
                partial += size
        return MemoryReport(partial, full, 0, False)

    def enforce(self, limit_bytes: int, evictor: Evictor | None = None) -> MemoryReport:
        """Evict until no more than `limit_bytes` are held, cold keys first."""
        evictor = evictor or Evictor(self.graph)
        partial = [each for each in self._arrangements() if not each[1].full]
        cold = {id(arrangement): _age(arrangement) for _, arrangement in partial}
        self.meter.begin_check(self.measure().total_bytes > NEAR * limit_bytes)
        if self.measure().total_bytes > limit_bytes:
            self._shrink(limit_bytes, evictor, partial, cold)
            for _, arrangement in partial:
                arrangement.known = len(arrangement.index)
        report = self.measure()
        over = report.total_bytes > limit_bytes
        nothing_left = all(not arrangement.index for _, arrangement in partial)
        return MemoryReport(report.partial_bytes, report.full_bytes, evictor.count, over and nothing_left)

    def age(self) -> None:
        """Put what was read since the last check last."""
        for _, arrangement in self._arrangements():
            _age(arrangement)

    def _shrink(self, limit_bytes: int, evictor: Evictor, partial: list[Place], cold: dict[int, int]) -> None:
        if limit_bytes <= self.measure().full_bytes:
            for operator, arrangement in partial:
                evictor.evict_all(operator, arrangement)
            return
        views = [each for each in partial if each[1].views]
        below = [(operator, each) for operator, each in partial if not each.views and each is operator.state]
        caches = [(operator, each) for operator, each in partial if not each.views and each is not operator.state]
        every = {id(each): len(each.index) for _, each in partial}
        self._evict_caches(evictor, limit_bytes, caches, cold, limit_bytes * CACHE_SHARE)
        self._evict_orphans(evictor, below)
        self._evict_shares(evictor, limit_bytes, views, cold, spare_dependents=True)
        self._evict_caches(evictor, limit_bytes, caches, every)
        self._evict_shares(evictor, limit_bytes, views, every)
        for operator, arrangement in below:
            while arrangement.index and (excess := self._excess(limit_bytes)) > 0:
                self._evict_first(evictor, operator, arrangement, self._keys(arrangement, excess))

    def _evict_caches(
        self, evictor: Evictor, limit_bytes: int, caches: list[Place], counts: dict[int, int], kept_bytes: float = 0
    ) -> None:
        """Evict up to so many keys of each cache, of each its share, until they take `kept_bytes`."""
        while any(counts[id(each)] for _, each in caches):
            size = sum(self.meter.bytes_of(each) for _, each in caches)
            excess = min(self._excess(limit_bytes), size - kept_bytes)
            if excess <= 0:
                return
            for operator, arrangement in caches:
                keys = self._keys(arrangement, excess * self.meter.bytes_of(arrangement) / size)
                self._evict_first(evictor, operator, arrangement, min(counts[id(arrangement)], keys))
                counts[id(arrangement)] = max(0, counts[id(arrangement)] - keys)

    def _evict_orphans(self, evictor: Evictor, below: list[Place]) -> None:
        """Look for state that nothing depends on, as long as much of it is found."""
        for operator, arrangement in below:
            for _ in range(0, len(arrangement.index), LOOKS):
                if self._evict_first(evictor, operator, arrangement, LOOKS, spare_dependents=True) < LOOKS // 4:
                    break

    def _evict_shares(
        self, evictor: Evictor, limit_bytes: int, views: list[Place], counts: dict[int, int], spare_dependents: bool = False
    ) -> None:
        """Evict up to so many keys of each view, of each its share."""
        while (excess := self._excess(limit_bytes)) > 0 and (count := sum(counts[id(each)] for _, each in views)) > 0:
            # State below goes with a key, how much is seen afterwards: at first this is taken to be all there is.
            bytes_each = self.measure().partial_bytes / max(1, sum(len(each.index) for _, each in views))
            part = min(1.0, excess / bytes_each / count)
            for operator, arrangement in views:
                wanted = ceil(counts[id(arrangement)] * part)
                self._evict_first(evictor, operator, arrangement, wanted, spare_dependents)
                counts[id(arrangement)] -= wanted

    def _evict_first(
        self, evictor: Evictor, operator: Operator, arrangement: Arrangement, count: int, spare_dependents: bool = False
    ) -> int:
        """Evict the first keys of the index, and what only they needed; returns how many.

        With `spare_dependents`, those that something else is made from go to its end instead.
        """
        before = evictor.count
        for key in list(islice(arrangement.index, count)):
            if not spare_dependents or evictor.is_orphan(operator, arrangement, key):
                evictor.evict_with_origins(operator, arrangement, key)
            elif key in arrangement.index:
                arrangement.index[key] = arrangement.index.pop(key)
        return evictor.count - before

    def _excess(self, limit_bytes: int) -> int:
        return self.measure().total_bytes - limit_bytes

    def _keys(self, arrangement: Arrangement, excess_bytes: float) -> int:
        """How many keys take so many bytes."""
        return max(0, ceil(excess_bytes / (self.meter.mean(arrangement) + INDEX_BYTES)))

    def _arrangements(self) -> Iterator[Place]:
        """Downstream first: views before the state they are made from."""
        for operator in sorted(self.graph.operators.values(), key=lambda each: -each.level):
            for arrangement in operator.arrangements():
                yield operator, arrangement


def _age(arrangement: Arrangement) -> int:
    """Put what was read last; returns how many keys were there at the last check and not read since."""
    index, read = arrangement.index, arrangement.referenced
    moved = 0
    for key in read:
        value = index.pop(key, None)
        if value is not None:
            index[key] = value
            moved += 1
    arrangement.referenced = set()
    cold = max(0, min(arrangement.known, len(index)) - moved)
    arrangement.known = len(index)
    return cold
