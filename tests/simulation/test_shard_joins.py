"""Joins over two workers: nothing between inputs and results is kept, and no order of the inputs is a bad one."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from dataflow.expressions.expression import Column
from dataflow.expressions.source import Key
from dataflow.plan.node import Base, Columns, Join, Node
from dataflow.runtime.shard_messages import BeginEpoch, Outgoing, StartView, Upquery, UpqueryAnswered
from dataflow.runtime.shard_worker import ShardWorker
from dataflow.sharding import shard_of
from dataflow.state.delta import Delta
from dataflow.values.types import INT, Row
from tests.unit.dataflow.test_joins import EDGE, Tables, triangle, triangles

SHARDS = 2


class Workers:
    """Two workers, one view. `crossed` counts the prefixes that went from one to the other."""

    def __init__(self, node: Node, key: Columns, bases: Sequence[Base]) -> None:
        self.keys = {base.table: base.primary_key for base in bases}
        self.tables = [Tables(list(bases)) for _ in range(SHARDS)]
        self.workers = [ShardWorker(shard, SHARDS, self.tables[shard]) for shard in range(SHARDS)]
        self.epoch = 0
        self.crossed = 0
        self.answers: list[Row] = []
        self._run([{}] * SHARDS, (StartView(0, node, key),))

    def add(self, table: int, rows: Iterable[Row]) -> None:
        parts: list[list[Row]] = [[] for _ in range(SHARDS)]
        for row in rows:
            parts[shard_of(tuple(row[c] for c in self.keys[table]), SHARDS)].append(row)
        self._run([{table: tables.add(table, part)} for tables, part in zip(self.tables, parts, strict=True)])

    def read(self, key: Key) -> list[Row]:
        self.workers[shard_of(key, SHARDS)].handle(Upquery(0, 0, (key,)))
        self._run([{}] * SHARDS)
        return self.answers

    def _run(self, changes: Sequence[dict[int, Delta]], transitions: tuple[StartView, ...] = ()) -> None:
        self.epoch += 1
        waiting = [(shard, BeginEpoch(self.epoch, each, transitions)) for shard, each in enumerate(changes)]
        while waiting:
            shard, message = waiting.pop(0)
            for effect in self.workers[shard].handle(message):
                if isinstance(effect, Outgoing):
                    self.crossed += sum(len(rows) for _, rows, _ in effect.bundle.rows)
                    waiting.append((effect.to, effect.bundle))  # type: ignore[arg-type]
                elif isinstance(effect, UpqueryAnswered):
                    self.answers = list(effect.rows[0])

    def held_rows(self) -> Counter[str]:
        """How many rows the operators hold, on both shards together."""
        return Counter(
            {
                operator.label: sum(
                    len(each.bag(value))
                    for worker in self.workers
                    for each in worker.programs.operator(operator.number).arrangements()
                    for value in each.index.values()
                )
                for operator in self.workers[0].engine.graph.operators.values()
            }
        )


def test_triangle_of_two_workers_holds_edges_and_results_and_nothing_between() -> None:
    draw = random.Random(1)
    edges = list({(draw.randrange(60), draw.randrange(60)) for _ in range(900)})
    workers = Workers(triangle((0, 1, 2)), (), [EDGE])
    for start in range(0, len(edges), 50):
        workers.add(1, edges[start : start + 50])
    found = workers.read(())
    assert Counter(found) == triangles(edges)
    held = workers.held_rows()
    assert sum(held.values()) - len(found) <= 3 * len(edges), "each edge is held once for each index, by either end and both"
    assert len(held) == 2


def crossed(order: Sequence[int], edges: Sequence[Row]) -> int:
    workers = Workers(triangle(order), (), [EDGE])
    for start in range(0, len(edges), 200):
        workers.add(1, edges[start : start + 200])
    return workers.crossed


def test_worst_order_of_a_skewed_triangle_sends_at_most_twice_what_the_best_does() -> None:
    """One node is joined to all others in both directions: following it first is what a bad order does."""
    draw = random.Random(2)
    hub = [(0, n) for n in range(1, 250)] + [(n, 0) for n in range(1, 250)]
    edges = list({*hub, *((draw.randrange(1, 250), draw.randrange(1, 250)) for _ in range(500))})
    draw.shuffle(edges)
    sent = [crossed(order, edges) for order in itertools.permutations(range(3))]
    assert max(sent) <= 2 * min(sent), sent
    assert max(sent) <= 20 * len(edges), "following the hub would send a prefix for each pair of its edges"


def test_seven_way_star_join_of_two_workers_holds_no_intermediate_rows() -> None:
    hub = Base(1, (INT,) * 7, (0,), "hub")
    points = [Base(2 + n, (INT, INT), (0,), f"point {n}") for n in range(6)]
    equalities = tuple((1 + n, 7 + 2 * n) for n in range(6))
    node = Join((hub, *points), equalities, None, (Column(0, INT), *(Column(8 + 2 * n, INT) for n in range(6))))
    workers = Workers(node, (0,), [hub, *points])
    for base in points:
        workers.add(base.table, [(n, 100 + n) for n in range(20)])
    workers.add(1, [(n, *((n + i) % 20 for i in range(6))) for n in range(50)])
    assert workers.read(3) == [(3, 103, 104, 105, 106, 107, 108)]
    assert workers.read(49) == [(49, 109, 110, 111, 112, 113, 114)]
    workers.add(1, [(60, 1, 1, 1, 1, 1, 1)])
    held = {label: count for label, count in workers.held_rows().items() if not label.startswith("Base")}
    assert list(held.values()) == [2]
