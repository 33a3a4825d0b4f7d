"""What a shard keeps of the views when another shard is lost, and which keys of that can be used again.

All views end when a shard is lost, as none of them hears of all changes any more. A shard whose engine is at rest keeps that engine, and what
changes in its tables. When all shards are back, new engines are made as of the epoch of those that were kept, take over the keys
that are intact, and follow what has changed since: a fill beside the epochs, that most is known of before it begins
(`dataflow.runtime.shard_fill`).

A key of a kept engine is as right as before. But a stateful operator drops the changes of keys that it does not hold, and a shard that
was lost holds none: so a key is *intact* if no state that it was made from was on a lost shard. What is not known to be is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataflow.expressions.source import Key
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Delta
from dataflow.state.eviction import Evictor, Pattern

if TYPE_CHECKING:
    from dataflow.runtime.engine import Engine
    from dataflow.runtime.shard_messages import StartView

NEVER = 1 << 62
"""Comes after all epochs."""
ROWS_KEPT_MAX = 10_000
"""So many changed rows are kept until all shards are back; after more of them, views begin anew."""

Changes = Callable[[], Mapping[int, Delta]]
"""What an epoch has changed, by table; asked for when it is known which tables matter."""


@dataclass(frozen=True, slots=True)
class KeptViews:
    """An engine at rest as of `epoch`; no table of its views changed until `unchanged_until`."""

    epoch: int
    unchanged_until: int
    engine: Engine
    views: tuple[StartView, ...]


class KeptTables:
    """A shard's tables as of an epoch, `since` which all that has changed in them is known; NEVER if it is not."""

    def __init__(self, state: Any, since: int) -> None:
        self.state, self.since = state, since
        self._changes: list[Changes] = []
        self._rows = 0

    def collect(self, rows: int, changes: Changes) -> None:
        """An epoch has changed no more than so many rows."""
        self._rows += rows
        if self._rows > ROWS_KEPT_MAX:
            self.forget()
        elif self.since != NEVER:
            self._changes.append(changes)

    def forget(self) -> None:
        self.state, self.since = None, NEVER
        self._changes.clear()

    def changes(self) -> dict[int, Delta]:
        """All that has changed, by table."""
        found: dict[int, Delta] = {}
        for changes in self._changes:
            for table, delta in changes().items():
                found.setdefault(table, []).extend(delta)
        return found


@dataclass(frozen=True, slots=True)
class KeptReport:
    """What a shard has kept: views as of `epoch`, 0 if none. Of the changes of its tables `since` an epoch it knows."""

    shard: int
    generation: int
    epoch: int
    unchanged_until: int
    since: int


def resumable(reports: Iterable[KeptReport]) -> tuple[int, frozenset[int]] | None:
    """The epoch whose views can go on, and the shards that have lost their part of them; None if nothing was kept, or changes are not known."""
    reports = list(reports)
    epoch = max(report.epoch for report in reports)
    lost = [report for report in reports if report.epoch != epoch]
    unchanged_until = max(report.unchanged_until for report in reports if report.epoch == epoch)
    if not epoch or any(report.since > unchanged_until for report in lost):
        return None
    return epoch, frozenset([report.shard for report in lost])


class IntactKeys:
    """The keys of a kept graph that were made from no state of the `lost` shards."""

    def __init__(self, graph: Graph, lost: frozenset[int], owner: Callable[[Key], int]) -> None:
        self._lost, self._owner = lost, owner
        self._evictor = Evictor(graph, lambda operator, pattern: None)
        self._origins: dict[int, list[tuple[int, ...] | None]] = {}
        """By arrangement, for each state below it: the parts of a key that are the state's key; None if those are not known."""
        for operator in graph.operators.values():
            if lost and operator.is_partial and operator.state is not None:
                columns = operator.state.columns
                self._follow(operator, operator, dict(zip(columns, columns)))

    def _follow(self, origin: Operator, operator: Operator, shown: Pattern) -> None:
        """`shown`: which columns of the operator show columns of the origin's key."""
        for store in operator.stores.values():
            self._note(origin, operator, store, shown)
        for consumer, number in operator.consumers:
            for further in self._evictor.through(consumer, number, shown):
                state = consumer.state
                if state is not None:
                    self._note(origin, consumer, state, further)
                    further = {column: known for column, known in further.items() if column in state.columns}
                self._follow(origin, consumer, further)

    def _note(self, origin: Operator, operator: Operator, arrangement: Arrangement, shown: Pattern) -> None:
        assert origin.state is not None
        places = {
            known: place
            for place, column in enumerate(arrangement.columns)
            if isinstance(known := shown.get(column), int) and operator.types[column] == origin.types[known]
        }
        is_known = all(column in places for column in origin.state.columns)
        found = tuple([places[column] for column in origin.state.columns]) if is_known else None
        self._origins.setdefault(id(arrangement), []).append(found)

    def has(self, arrangement: Arrangement, key: Key) -> bool:
        for places in self._origins.get(id(arrangement), ()):
            if places is None:
                return False
            parts = (key,) if len(arrangement.columns) == 1 else key
            origin = tuple([parts[place] for place in places])
            if self._owner(origin[0] if len(origin) == 1 else origin) in self._lost:
                return False
        return True
