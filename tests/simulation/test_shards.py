"""A cluster of shard workers under a seeded scheduler, against evaluation from scratch.

Bundles between two shards keep their order, everything else is shuffled. Shards are lost and
come back without state. After every action each key held anywhere equals the oracle's.
"""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.network.bundles import decode_bundle, encode_bundle
from dataflow.expressions.source import key_function
from dataflow.plan import fill_plan
from dataflow.plan.node import Columns, Join, LeftJoin, Node, SemiJoin
from dataflow.runtime.shard_messages import (
    BeginEpoch,
    Effect,
    EndView,
    EpochApplied,
    EvictKeys,
    LimitMemory,
    Outgoing,
    Reset,
    StartView,
    ToWorker,
    Transition,
    Upquery,
    UpqueryAnswered,
)
from dataflow.runtime.shard_worker import ShardWorker
from dataflow.sharding import shard_of
from dataflow.values.types import Kind, Row
from tests.property import dataflow_plans as plans
from tests.property.dataflow_oracle import evaluate
from tests.property.dataflow_plans import BASES, Action, MemorySource, histories

EXAMPLES = int(os.environ.get("MILLRACE_EXAMPLES", "100"))


@pytest.fixture(autouse=True, scope="module")
def _rows_are_loaded_in_many_rounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fill_plan, "LOADED_AT_ONCE", 5)
        yield



class Cluster:
    def __init__(self, shards: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.tables: dict[int, Counter[Row]] = {table: Counter() for table in BASES}
        self.sources = [MemorySource() for _ in range(shards)]
        self.workers = [ShardWorker(shard, shards, self.sources[shard]) for shard in range(shards)]
        self.channels: dict[tuple[int, int], deque[ToWorker]] = {}
        self.epoch = 0
        self.generation = 0
        self.views: dict[int, StartView] = {}
        self.view_count = 0
        self.applied: set[tuple[int, int]] = set()
        self.answers: dict[int, UpqueryAnswered] = {}

    def deliver(self, sender: int, to: int, message: ToWorker) -> None:
        self.channels.setdefault((sender, to), deque()).append(message)

    def run(self, until: int | None = None) -> None:
        """Deliver messages in random order until there are none, or only so many."""
        while True:
            waiting = [channel for channel, queue in sorted(self.channels.items()) if queue]
            if not waiting or until == 0:
                return
            until = None if until is None else until - 1
            sender, to = self.random.choice(waiting)
            self.carry_out(to, self.workers[to].handle(self.channels[sender, to].popleft()))

    def carry_out(self, shard: int, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Outgoing(to, bundle):
                    self.deliver(shard, to, decode_bundle(encode_bundle(bundle)))
                case EpochApplied(epoch):
                    self.applied.add((epoch, shard))
                case UpqueryAnswered(request):
                    self.answers[request] = effect

    def run_epoch(
        self, deltas: dict[int, list[tuple[Row, int]]] | None = None, transitions: tuple[Transition, ...] = (), lose: int | None = None
    ) -> None:
        self.epoch += 1
        parts: list[dict[int, list[tuple[Row, int]]]] = [{} for _ in self.workers]
        for table, delta in (deltas or {}).items():
            key_of = key_function(BASES[table].primary_key, BASES[table].types)
            for row, weight in delta:
                shard = shard_of(key_of(row), len(self.workers))
                parts[shard].setdefault(table, []).append((row, weight))
                rows = self.sources[shard].tables[table]
                rows[row] += weight
                if not rows[row]:
                    del rows[row]
        for shard, part in enumerate(parts):
            self.deliver(-1, shard, BeginEpoch(self.epoch, part, transitions))
        if lose is not None:
            self.run(self.random.randrange(40))
            self.lose(lose)
        self.run()
        assert all((self.epoch, shard) in self.applied and each.is_idle for shard, each in enumerate(self.workers))

    def lose(self, shard: int) -> None:
        """A worker dies in the middle of the epoch; Spark starts another in its place."""
        self.generation += 1
        self.channels = {
            channel: queue for channel, queue in self.channels.items() if shard not in channel and channel[0] != -1
        }
        self.workers[shard] = ShardWorker(shard, len(self.workers), self.sources[shard])
        self.applied = set()
        for each in range(len(self.workers)):
            self.deliver(-1, each, Reset(self.generation))
            self.deliver(-1, each, BeginEpoch(self.epoch, {}, tuple(self.views.values())))

    def do(self, action: Action, lose: int | None = None) -> None:
        known = sorted(self.views)
        match action:
            case plans.Write():
                self.run_epoch(self.deltas(action), lose=lose)
            case plans.AddView():
                added = StartView(self.view_count, action.node, action.key)
                self.view_count += 1
                self.views[added.view] = added
                self.run_epoch(transitions=(added,), lose=lose)
            case plans.RemoveView() if known:
                number = known[action.view % len(known)]
                del self.views[number]
                self.run_epoch(transitions=(EndView(number),), lose=lose)
            case plans.Read() if known:
                self.read(known[action.view % len(known)], action.key)
            case plans.Evict() if known:
                number = known[action.view % len(known)]
                for shard, worker in enumerate(self.workers):
                    held = list(worker.views[number].arrangement.index)
                    if held:
                        self.deliver(-1, shard, EvictKeys(number, (held[action.which % len(held)],)))
                self.run_epoch()
            case plans.EvictInternal():
                shard = action.which % len(self.workers)
                held = self.workers[shard].engine.measure()
                limit = held.full_bytes + held.partial_bytes * (action.which % 7) // 7
                self.deliver(-1, shard, LimitMemory(limit))
                self.run_epoch()
        self.check()

    def deltas(self, write: plans.Write) -> dict[int, list[tuple[Row, int]]]:
        deltas: dict[int, list[tuple[Row, int]]] = {}

        def change(table: int, row: Row, weight: int) -> None:
            deltas.setdefault(table, []).append((row, weight))
            self.tables[table][row] += weight
            if not self.tables[table][row]:
                del self.tables[table][row]

        for table, row in write.puts:
            key_of = key_function(BASES[table].primary_key, BASES[table].types)
            for old in [each for each in self.tables[table] if key_of(each) == key_of(row)]:
                change(table, old, -1)
            change(table, row, 1)
        for table, which in write.removes:
            present = sorted(self.tables[table], key=repr)
            if present:
                change(table, present[which % len(present)], -1)
        return deltas

    def read(self, number: int, key: tuple[object, ...]) -> None:
        view = self.workers[0].views[number]
        values = []
        for column, value in zip(view.key, key, strict=False):
            is_text = view.node.types[column].kind is Kind.VARCHAR
            values.append(value if value is None or isinstance(value, str) == is_text else None)
        index_key = view.index_key(values)  # type: ignore[arg-type]
        request = len(self.answers)
        self.deliver(-1, self.workers[0].owner(index_key), Upquery(request, number, (index_key,)))
        self.run_epoch()
        wanted = [row for row in evaluate(view.node, self.tables).elements() if view.arrangement.key_of(row) == index_key]
        answer = self.answers[request]
        assert answer.epoch == self.epoch and Counter(answer.rows[0]) == Counter(wanted)

    def check(self) -> None:
        for shard, worker in enumerate(self.workers):
            assert not worker.programs.fills
            for operator in worker.engine.graph.operators.values():
                rows = None
                for arrangement in operator.arrangements():
                    if not arrangement.index and not arrangement.full:
                        continue
                    rows = evaluate(operator.node, self.tables) if rows is None else rows
                    wanted: dict[object, Counter[Row]] = {}
                    for row, weight in rows.items():
                        wanted.setdefault(arrangement.key_of(row), Counter())[row] += weight
                    own = {key for key in wanted if worker.owner(key) == shard}
                    for key in {*arrangement.index, *(own if arrangement.full else ())}:
                        assert worker.owner(key) == shard, "a key is held on a shard that it does not live on"
                        value = arrangement.index.get(key)
                        found = {} if value is None else arrangement.bag(value)
                        assert Counter(found) == wanted.get(key, Counter()), (operator.label, arrangement.columns, key)


@given(histories(), st.integers(1, 4), st.integers(0, 2**32), st.lists(st.integers(0, 9), max_size=3))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), print_blob=True)
def test_shards_hold_what_evaluation_from_scratch_gives(history: list[Action], shards: int, seed: int, losses: list[int]) -> None:
    simulate(history, shards, seed, losses)


A, B, C = BASES[1], BASES[2], BASES[3]
LEFT = LeftJoin(A, B, ((1, 1),))
NESTED: list[tuple[Node, Columns]] = [
    (Join((LEFT, C), ((2, 6),)), ()),
    (Join((LEFT, C), ((2, 6),)), (0,)),
    (LeftJoin(LEFT, C, ((2, 0),)), ()),
    (SemiJoin(LEFT, C, ((2, 0),)), (2,)),
    (LeftJoin(Join((A, B), ((1, 4),)), LEFT, ((2, 2),)), (0,)),
]


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize(("node", "key"), NESTED)
def test_fills_and_loads_go_through_operators_that_are_kept_nowhere(node: Node, key: Columns, shards: int) -> None:
    """Each row of the inner operator leads to its own rows of the outer one, though one function may make both."""
    some = [(1, (n, n % 2, n % 3)) for n in range(6)] + [(2, (n, n % 2, "xy"[n % 2])) for n in range(6)]
    first = plans.Write(tuple(some + [(3, (n % 3, "abc"[n % 3], n)) for n in range(6)]), ())
    later = plans.Write(((1, (1, 0, 2)), (2, (2, 1, "z")), (3, (2, "q", 2))), ((1, 2), (2, 3)))
    reads = [plans.Read(0, (number,)) for number in range(4)] if key else []
    simulate([first, plans.AddView(node, key), *reads, later], shards, seed=7)


def test_keys_that_leave_are_counted_where_they_were() -> None:
    some = plans.Write(tuple((1, (n, n % 4, 0)) for n in range(8)), ())
    cluster = simulate([some, plans.AddView(A, (1,)), *(plans.Read(0, (key,)) for key in range(4))], 2, seed=1)
    held = [len(worker.views[0].arrangement.index) for worker in cluster.workers]
    for shard in range(2):
        cluster.deliver(-1, shard, LimitMemory(0))
    cluster.run_epoch()
    assert sum(held) == 4 and [worker.views[0].arrangement.evictions for worker in cluster.workers] == held


@pytest.mark.slow
@given(histories(), st.integers(1, 5), st.integers(0, 2**32), st.lists(st.integers(0, 9), max_size=3))
@settings(max_examples=2000, suppress_health_check=list(HealthCheck), print_blob=True)
def test_thousands_of_clusters_hold_what_evaluation_from_scratch_gives(
    history: list[Action], shards: int, seed: int, losses: list[int]
) -> None:
    simulate(history, shards, seed, losses)


def simulate(history: list[Action], shards: int, seed: int, losses: Iterable[int] = ()) -> Cluster:
    """Run the history; while action n is under way for n in `losses`, a shard is lost."""
    cluster = Cluster(shards, seed)
    for number, action in enumerate(history):
        loses = number in losses and isinstance(action, plans.Write | plans.AddView | plans.RemoveView)
        cluster.do(action, lose=number % shards if loses else None)
    return cluster

