"""Full state of a graph that has just been extended: computed here, or taken over from another.

A graph is extended in two steps. First all new operators and arrangements are there, the full
ones empty and listed in `unloaded`, inputs before what is made from them; then they are loaded in
that order. If that fails the extension is undone, and nothing else has noticed.

Loading may take long, so another graph over a copy of the same tables can do it elsewhere, and
its state be taken over once both are at the same epoch: what is filled is the same whoever
filled it. Of partial state only what somebody depends on is taken, not what merely caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dataflow.code.group_code import group_loader
from dataflow.code.topk_code import topk_loader
from dataflow.expressions.source import Key
from dataflow.plan.node import Aggregate
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.delta import Stream

ROWS_BETWEEN_MEASURES = 100_000
"""So many rows are read for a fill until it is looked how much memory it takes."""


class OverBudget(Exception):
    """More rows had to be read than were allowed."""


class Budget:
    """Allows so many rows to be read: what `Graph.spend` is set to."""

    def __init__(self, rows: int) -> None:
        self._rows = self._left = rows

    def renew(self) -> None:
        """Who has read too much is gone."""
        self._left = self._rows

    def __call__(self, rows: int) -> None:
        self._left -= rows
        if self._left < 0:
            raise OverBudget


class Abandoned(Exception):
    """The fill is not wanted any more."""


class OutOfMemory(Exception):
    """What is filled takes more memory than there is for it."""


class FillBudget:
    """Counts the `rows` that are read to fill an engine of its own, and ends that if it takes too much memory, or is abandoned."""

    def __init__(self, taken_bytes: Callable[[], int], limit_bytes: int) -> None:
        self._taken_bytes = taken_bytes
        self._limit_bytes = limit_bytes
        self.rows = 0
        self.abandoned = False

    def __call__(self, rows: int) -> None:
        if self.abandoned:
            raise Abandoned
        before, self.rows = self.rows, self.rows + rows
        if before // ROWS_BETWEEN_MEASURES != self.rows // ROWS_BETWEEN_MEASURES:
            self.check()

    def check(self) -> None:
        if self._taken_bytes() > self._limit_bytes:
            raise OutOfMemory


def load(graph: Graph, prepared: Graph | None = None) -> None:
    """Give every full arrangement that has none yet its rows; from `prepared` if it has them."""
    if prepared is not None:
        take_full(graph, prepared)
    while graph.unloaded:
        _compute(graph, *graph.unloaded[0])
        del graph.unloaded[0]


def take_full(graph: Graph, prepared: Graph) -> None:
    """Give the full arrangements that have no rows yet those that `prepared` has."""
    for operator, arrangement in list(graph.unloaded):
        taken = _counterpart(prepared, operator, arrangement)
        if taken is not None and prepared.is_loaded(taken):
            assert taken.kind is arrangement.kind
            arrangement.index.update(taken.index)
            arrangement.orders = taken.orders
            graph.unloaded.remove((operator, arrangement))


def has_new_full_state(graph: Graph, planned: Graph) -> bool:
    """Whether another graph, which nothing was loaded into, needs full arrangements that this one does not have."""
    needed = [_counterpart(graph, operator, arrangement) for operator, arrangement in planned.unloaded]
    return any(each is None or not graph.is_loaded(each) for each in needed)


def take_over(
    graph: Graph, prepared: Graph, is_wanted: Callable[[Arrangement, Key], bool] = lambda arrangement, key: True
) -> Iterator[tuple[Arrangement, Key]]:
    """Fill the holes that `prepared` has filled, where that `is_wanted`; each key of an arrangement that views read."""
    for other in list(prepared.operators.values()):
        operator = graph.operators.get(other.placement)
        if operator is None:
            continue
        for theirs in other.arrangements():
            mine = _counterpart(graph, other, theirs)
            if mine is None or mine.full or not (theirs is other.state or theirs.views):
                continue
            for key, value in theirs.index.items():
                if key not in mine.index and is_wanted(theirs, key):
                    mine.adopt(key, mine.store(dict(value)) if mine.kind is ArrangementKind.BAG else value)
                    if mine.views:
                        yield mine, key


def _counterpart(graph: Graph, operator: Operator, arrangement: Arrangement) -> Arrangement | None:
    """What another graph has for an arrangement of this operator."""
    found = graph.operators.get(operator.placement)
    if found is None:
        return None
    return found.state if arrangement is operator.state else found.stores.get(arrangement.columns)


def _compute(graph: Graph, operator: Operator, arrangement: Arrangement) -> None:
    node = operator.node
    if arrangement is not operator.state:
        arrangement.load(graph.stream(operator))
        arrangement.end_load()
        return
    rows = Stream(graph.stream(operator.inputs[0]))
    if arrangement.kind is ArrangementKind.STATE:
        group_loader(operator)(rows, arrangement.index)
        return
    loader: Callable[[Stream], object] = group_loader(operator) if isinstance(node, Aggregate) else topk_loader(operator)
    arrangement.index[()] = loader(rows)
