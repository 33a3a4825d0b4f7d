"""Which keys leave when memory runs out: a clock hand over all partial state.

The hand goes round the keys of all partial arrangements. A key that was read or filled since
it last came by is passed over once; a cold one is evicted. State in the middle of the graph
is not read by clients, so it goes only once nothing that is filled depends on it, but then at
once: a view therefore gives up no more than its own share of what has to go. Looking for such
state takes a while, so at one time only some keys are looked at, and views make up for the
rest. If that does not free enough, state goes together with what depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dataflow.arrangement import Arrangement
from dataflow.eviction import Evictor
from dataflow.graph import Graph
from dataflow.memory import INDEX_BYTES, Meter
from dataflow.operator import Operator

LOOKS_MAX = 10_000
"""Keys of state in the middle that are looked at in one go, some µs each."""
TURNS = 8
"""So often the hand goes round at most before memory is within its limit."""


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
        self._looks = 0

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
        for _, arrangement in self._arrangements():
            arrangement.referenced = set(arrangement.referenced)  # a set keeps the table it once needed
        report = self.measure()
        evictor = evictor or Evictor(self.graph)
        self._looks = LOOKS_MAX
        # Twice round gives every key its second chance; the last round spares nothing.
        for turn in range(TURNS):
            spare_dependents = turn < TURNS - 1
            for operator, arrangement in list(self._arrangements()):
                excess: float = report.total_bytes - limit_bytes
                if excess <= 0 or arrangement.full or not arrangement.index:
                    continue
                if spare_dependents and arrangement.views and self._looks > 0:
                    excess *= self.meter.bytes_of(arrangement) / report.partial_bytes
                self._sweep(evictor, operator, arrangement, excess, spare_dependents)
                report = self.measure()
        over = report.total_bytes > limit_bytes
        nothing_left = all(not each.index for _, each in self._arrangements() if not each.full)
        return MemoryReport(report.partial_bytes, report.full_bytes, evictor.count, over and nothing_left)

    def _sweep(
        self, evictor: Evictor, operator: Operator, arrangement: Arrangement, excess: float, spare_dependents: bool
    ) -> None:
        """One turn of the hand over an arrangement, or less if `excess` bytes are gone before."""
        mean = self.meter.mean(arrangement) + INDEX_BYTES
        referenced = arrangement.referenced
        looks = len(arrangement.index)
        if spare_dependents and not arrangement.views:
            looks = min(looks, self._looks)
            self._looks -= looks
        for _ in range(looks):
            if excess <= 0:
                return
            key = next(arrangement.sweep, arrangement)
            if key is arrangement:
                arrangement.sweep = iter(list(arrangement.index))
                continue
            if key not in arrangement.index:
                continue
            if arrangement.views and key in referenced and spare_dependents:
                referenced.discard(key)
                continue
            if spare_dependents and next(evictor.dependents(operator, arrangement, key), None) is not None:
                continue
            before = evictor.count
            evictor.evict(operator, arrangement, key)
            excess -= mean * (evictor.count - before)

    def _arrangements(self) -> Iterator[tuple[Operator, Arrangement]]:
        """Downstream first: views before the state they are made from."""
        for operator in sorted(self.graph.operators.values(), key=lambda each: -each.level):
            for arrangement in operator.arrangements():
                yield operator, arrangement
