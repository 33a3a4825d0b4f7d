"""Arrangements: a node's rows indexed by some of its columns, shared by all who look there.

An arrangement is full (a key it lacks has no rows) or partial (a key it lacks is a *hole*:
unknown). `index` maps keys to what its kind says:

- UNIQUE: the key's only row, which has columns; `()` if it has none
- BAG:    a dict from row to weight; `OrderedRows` once a view asked for an order
- STATE:  an aggregate's accumulators, the output row (or `()`) last
- PARTS:  group key → STATE, for aggregates that are partial by part of their group
- WINDOWS: partition key → a top-k's ordered rows and, last, the bag of those it shows

Generated code reads and changes `index` in place; the dict itself is never replaced.

Versions. `index` is the state as of the epoch being worked on or just closed. While someone
reads an older one, each change first records what the key had: `before` holds this for the
running step, `history` for closed epochs, newest last. A reader with a `Handle` at epoch e
finds a key's value in the first record later than e, else in the index. Compaction is to
drop the records that no handle is old enough to need: no merge, so no epoch pays for one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import Any

from dataflow.expressions.source import Key
from dataflow.plan.node import Columns
from dataflow.state.delta import Bag, Change, Delta, rows_of
from dataflow.state.sorted_rows import OrderedRows, SortKey
from dataflow.values.types import Row


class ArrangementKind(Enum):
    UNIQUE = "unique"
    BAG = "bag"
    STATE = "state"
    PARTS = "parts"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class Hit:
    """The key's rows, known to be all."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Hole:
    """The key's rows are not known."""


HOLE = Hole()
_ABSENT = object()


class Arrangement:
    """See the module. `fill` computes the value of a key as of now and stores it."""

    __slots__ = (
        "amended", "amended_columns", "before", "columns", "compute", "delta_of", "epoch", "evictions", "full", "handles", "history", "index", "key_of", "kind",
        "known", "name", "orders", "reason", "recorders", "referenced", "step_changes", "touched", "users", "views",
    )  # fmt: skip

    def __init__(self, columns: Columns, kind: ArrangementKind, key_of: Callable[[Row], Key], name: str, reason: str = "") -> None:
        self.columns = columns
        self.kind = kind
        self.key_of = key_of
        self.name = name
        self.reason = reason
        self.full = bool(reason)
        self.index: dict[Key, Any] = {}
        self.compute: Callable[[Key], Any] = _cannot_compute
        self.delta_of: Callable[[], Delta] | None = None
        self.users = 0
        self.views = 0
        self.orders: dict[Columns, SortKey] = {}
        self.touched: set[Key] = set()
        """Keys that were filled, changed or evicted since last asked."""
        self.amended: dict[Key, Row] = {}
        """The rows of keys that have changed in no columns but `amended_columns`, unless they are touched as well."""
        self.amended_columns: frozenset[int] = frozenset()
        self.referenced: set[Key] = set()
        """Keys that were read since the memory limit was last looked at."""
        self.evictions = 0
        """So many keys were evicted while a view read them here."""
        self.known = 0
        """So many keys were there then."""
        self.recorders = 0
        self.before: dict[Key, Any] = {}
        self.step_changes: dict[Key, Delta] | None = None
        self.history: deque[tuple[int, dict[Key, Any]]] = deque()
        self.handles: dict[int, int] = {}
        self.epoch = 0

    # -- reading

    def fill(self, key: Key) -> Any:
        """Compute the value of a key that is a hole, and remember it."""
        assert not self.full, f"{self.name} is full"
        value = self.compute(key)
        self.adopt(key, value)
        return value

    def adopt(self, key: Key, value: Any) -> None:
        """Remember the value of a key that was a hole."""
        if self.recorders:
            self._record_fill(key, value)
        self.index[key] = value

    def bag(self, value: Any) -> Bag:
        """The rows of an index entry."""
        match self.kind:
            case ArrangementKind.UNIQUE:
                return {value: 1} if value else {}
            case ArrangementKind.BAG:
                return value  # type: ignore[no-any-return]
            case ArrangementKind.STATE:
                return {value[-1]: 1} if value[-1] else {}
            case ArrangementKind.PARTS:
                return {state[-1]: 1 for state in value.values() if state[-1]}
            case ArrangementKind.WINDOWS:
                return {row: weight for state in value.values() for row, weight in state[-1].items()}

    def lookup(self, key: Key) -> Hit | Hole:
        value = self.index.get(key)
        if value is None:
            return Hit(()) if self.full else HOLE
        return Hit(tuple(rows_of(self.bag(value))))

    def store(self, bag: Bag) -> Any:
        """What the index of a UNIQUE or BAG arrangement holds for these rows."""
        if self.kind is ArrangementKind.BAG:
            return OrderedRows(bag, self.orders) if self.orders else bag
        assert len(bag) <= 1 and all(weight == 1 for weight in bag.values()), f"{self.name}: not unique: {bag}"
        return next(iter(bag), ())

    def load(self, delta: Iterable[Change]) -> None:
        """Take rows into a full arrangement, which has none of them yet. `end_load` comes after all of them."""
        for row, weight in delta:
            key = self.key_of(row)
            if self.kind is ArrangementKind.UNIQUE:
                assert key not in self.index, f"{self.name}: two rows with key {key!r}"
                self.index[key] = row
            else:
                bag = self.index.setdefault(key, {})
                bag[row] = bag.get(row, 0) + weight

    def end_load(self) -> None:
        """All rows have come."""
        if self.orders:
            self.set_orders(self.orders)

    def set_orders(self, orders: dict[Columns, SortKey]) -> None:
        """Keep each key's rows in these orders from now on, for range reads."""
        assert self.kind is ArrangementKind.BAG
        self.orders = orders
        for key, bag in self.index.items():
            self.index[key] = self.store(dict(bag))

    def evict(self, key: Key) -> bool:
        """Make the key a hole. Evicting what depends on it is the caller's business."""
        assert not self.full, f"{self.name} is full"
        value = self.index.pop(key, None)
        if value is None:
            return False
        if self.handles:
            self.history.append((self.epoch + 1, {key: self._copied(value)}))
        self.referenced.discard(key)
        if self.views:
            self.touched.add(key)
            self.evictions += 1
        return True

    def release(self) -> None:
        """Nobody uses it any more: let go what it holds, and what refers to it."""
        self.compute, self.delta_of = _cannot_compute, None
        for held in (self.index, self.touched, self.amended, self.referenced, self.before, self.history):
            held.clear()

    # -- versions

    def record(self, key: Key, value: Any) -> None:
        """Remember what the key had before this step changes it (None: it was a hole)."""
        if key not in self.before:
            self.before[key] = self._copied(value)

    def _copied(self, value: Any) -> Any:
        """The value as rows that later changes leave alone."""
        if value is None:
            return () if self.full and self.kind is ArrangementKind.UNIQUE else {} if self.full else None
        return value if self.kind is ArrangementKind.UNIQUE else dict(self.bag(value))

    def _record_fill(self, key: Key, value: Any) -> None:
        """A fill within a step knows the key after the step: take the step's changes off again."""
        if key in self.before:
            return
        changed = self._step_changes().get(key)
        if changed and self.kind in (ArrangementKind.UNIQUE, ArrangementKind.BAG):
            bag = dict(self.bag(value))
            for row, weight in changed:
                bag[row] = bag.get(row, 0) - weight
            kept = {row: weight for row, weight in bag.items() if weight}
            self.before[key] = self.store(kept) if self.kind is ArrangementKind.UNIQUE else kept
        elif self.handles:
            self.before[key] = None

    def _step_changes(self) -> dict[Key, Delta]:
        """What the running step changes, by key."""
        if self.step_changes is None:
            self.step_changes = {}
            for change in () if self.delta_of is None else self.delta_of():
                self.step_changes.setdefault(self.key_of(change[0]), []).append(change)
        return self.step_changes

    def end_step(self) -> None:
        """The running step is over: keep what it recorded if a handle needs it."""
        self.step_changes = None
        if not self.before:
            return
        if self.handles:
            if self.history and self.history[-1][0] >= self.epoch:  # a key that was evicted since the epoch is of the next one
                for key, value in self.before.items():
                    self.history[-1][1].setdefault(key, value)
            else:
                self.history.append((self.epoch, dict(self.before)))
        self.before.clear()

    def open_handle(self, epoch: int) -> Handle:
        """Keep the state as of the last closed `epoch` readable until the handle is closed."""
        if not self.handles:
            self.recorders += 1
        self.handles[epoch] = self.handles.get(epoch, 0) + 1
        self.epoch = max(self.epoch, epoch)
        return Handle(self, epoch)

    def close_handle(self, epoch: int) -> None:
        self.handles[epoch] -= 1
        if not self.handles[epoch]:
            del self.handles[epoch]
        oldest = min(self.handles, default=None)
        while self.history and (oldest is None or self.history[0][0] <= oldest):
            self.history.popleft()
        if oldest is None:
            self.recorders -= 1

    @property
    def since(self) -> int:
        """The oldest epoch that can still be read."""
        return min(self.handles, default=self.epoch)

    def recorded(self, value: Any) -> Hit | Hole:
        """A value that was recorded before it changed, as `lookup` would have found it."""
        if value is None:
            return HOLE
        bag = {value: 1} if self.kind is ArrangementKind.UNIQUE and value else value or {}
        return Hit(tuple(rows_of(bag)))


class Handle:
    """A reader's hold on one epoch of an arrangement.

    `_first` is what each key was before it first changed after the epoch, of the records up to the epoch `_merged`: so a lookup does
    not go through all of them. Those of the last epoch that has any may still grow.
    """

    __slots__ = ("_arrangement", "_first", "_merged", "epoch")

    def __init__(self, arrangement: Arrangement, epoch: int) -> None:
        self._arrangement: Arrangement | None = arrangement
        self.epoch = self._merged = epoch
        self._first: dict[Key, Any] = {}

    def lookup(self, key: Key) -> Hit | Hole:
        arrangement = self._arrangement
        assert arrangement is not None, "the handle is closed"
        assert arrangement.since <= self.epoch, f"{arrangement.name}: epoch {self.epoch} is compacted, since is {arrangement.since}"
        growing = self._merge(arrangement)
        for records in (self._first, *growing):
            value = records.get(key, _ABSENT)
            if value is not _ABSENT:
                return arrangement.recorded(value)
        return arrangement.lookup(key)

    def _merge(self, arrangement: Arrangement) -> list[dict[Key, Any]]:
        """Take the records that are complete, and return the others, oldest first."""
        history = arrangement.history
        last = history[-1][0] if history else 0
        new = list(takewhile(lambda each: each[0] > self._merged, reversed(history)))
        new.reverse()
        for closed, records in new:
            if closed < last:
                for key, value in records.items():
                    self._first.setdefault(key, value)
                self._merged = closed
        return [records for closed, records in new if closed == last]

    def close(self) -> None:
        if self._arrangement is not None:
            self._arrangement.close_handle(self.epoch)
            self._arrangement = None


def _cannot_compute(key: Key) -> Any:
    raise AssertionError("this arrangement has no way to compute a key")
