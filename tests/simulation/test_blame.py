"""A view that cannot be computed for some row is the one that is blamed, not others that changed or were read."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

import pytest

from dataflow.expressions.expression import Column, Literal
from dataflow.functions import call
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Columns, Join, Node
from dataflow.runtime import shard_worker
from dataflow.runtime.shard_fill import BeginFill, EndFill, FillTransition
from dataflow.runtime.shard_messages import (
    EndView,
    KeysTooLarge,
    Outgoing,
    StartView,
    Transition,
    UpqueryAnswered,
    UpqueryRefused,
    ViewsEnded,
)
from dataflow.runtime.shard_views import FailedFill, FailedViews, RunBeside, ShardViews
from dataflow.sharding import shard_of
from dataflow.values.types import BIGINT, INT
from tests.property.dataflow_plans import MemorySource

SHARDS = 2
ROWS = Base(1, (INT, BIGINT, INT), (0,), "a")
LARGEST = 2**63 - 1
SUM = call("+", Column(1, BIGINT), Literal(LARGEST, BIGINT))
OVERFLOWS = Join((ROWS,), outputs=(Column(2, INT), SUM))
ABOVE = Aggregate(OVERFLOWS, (0,), (AggregateFunction("max", (Column(1, BIGINT),), BIGINT),))
COUNTED = Aggregate(ROWS, (2,), (AggregateFunction("count_star", (), BIGINT),))
VIEWS: dict[int, tuple[Node, Columns]] = {0: (COUNTED, (0,)), 1: (OVERFLOWS, (0,)), 2: (ROWS, (2,)), 3: (ABOVE, (0,))}


class HeldSource(MemorySource):
    @property
    def state(self) -> MemorySource:
        return self

    def copy(self, tables: Iterable[int]) -> MemorySource:
        return deepcopy(self)

    def advance(self, state: MemorySource) -> None:
        self.tables = deepcopy(state.tables)


class Cluster:
    def __init__(self) -> None:
        self.sources = [HeldSource() for _ in range(SHARDS)]
        self.views = [ShardViews(shard, SHARDS, source) for shard, source in enumerate(self.sources)]
        self.failed: list[FailedViews] = []
        self.ended: list[ViewsEnded] = []
        self.failed_fills: list[FailedFill] = []
        self.answers: dict[int, tuple[tuple[object, ...], ...]] = {}
        self.refused: list[int] = []
        self.large: list[tuple[int | bytes, ...]] = []
        self.epoch = 0

    def carry_out(self, shard: int, effects: list) -> None:  # type: ignore[type-arg]
        for effect in effects:
            if isinstance(effect, Outgoing):
                self.carry_out(effect.to, self.views[effect.to].receive(effect.bundle))
            elif isinstance(effect, RunBeside):
                self.run_beside(shard, effect)
            elif isinstance(effect, FailedViews):
                self.failed.append(effect)
            elif isinstance(effect, ViewsEnded):
                self.ended.append(effect)
            elif isinstance(effect, FailedFill):
                self.failed_fills.append(effect)
            elif isinstance(effect, UpqueryAnswered):
                self.answers[effect.request] = effect.rows
            elif isinstance(effect, KeysTooLarge):
                self.large.append(effect.views)
            elif isinstance(effect, UpqueryRefused):
                self.refused.append(effect.request)

    def run_beside(self, shard: int, effect: RunBeside) -> None:
        try:
            handled, error = effect.work(), None
        except Exception as raised:
            handled, error = [], raised
        self.carry_out(shard, self.views[shard].ran(effect.fill, handled, error))

    def run_epoch(self, rows: list[tuple[int, int, int]], transitions: tuple[Transition | FillTransition, ...] = ()) -> None:
        self.epoch += 1
        for shard, views in enumerate(self.views):
            own = [(row, 1) for row in rows if shard_of(row[0], SHARDS) == shard]
            for row, _ in own:
                self.sources[shard].tables[1][row] += 1
            self.carry_out(shard, views.apply(self.epoch, 0, {1: own}, transitions))

    def read(self, view: int, key: int) -> None:
        shard = shard_of(key, SHARDS)
        self.carry_out(shard, self.views[shard].lookup(view * 100 + key, view, (key,), 0))


@pytest.mark.parametrize("read", [(), (0, 2), (1,), (1, 3)])
def test_a_view_that_cannot_be_computed_ends_with_what_is_made_of_it_and_no_other(read: tuple[int, ...]) -> None:
    cluster = Cluster()
    cluster.run_epoch([(1, -5, 7)], tuple(StartView(name, *view) for name, view in VIEWS.items()))
    for name in read:
        cluster.read(name, 7)
    cluster.run_epoch([])
    assert not cluster.ended
    for name in (0, 2):
        cluster.read(name, 8)
    cluster.run_epoch([])
    kept = [{name: views.views[name].arrangement for name in (0, 2)} for views in cluster.views]
    cluster.run_epoch([(2, 5, 7)])
    assert {name for each in cluster.ended if each.error is not None for name in each.views} == {1, 3}
    assert all(each.is_certain for each in cluster.ended)
    cluster.run_epoch([(3, 5, 7)])
    assert [{name: view.arrangement for name, view in views.views.items()} for views in cluster.views] == kept, "others keep all they have"
    cluster.answers.clear()
    cluster.run_epoch([], (EndView(1), EndView(3)))
    cluster.run_epoch([(4, -7, 7)], (StartView(1, *VIEWS[1]),))
    assert all(not views.worker.programs.dead and not views.worker.registry.ended for views in cluster.views)
    for name in (0, 2):
        cluster.read(name, 7)
    cluster.run_epoch([])
    assert cluster.answers[7] == (((7, 4),),) and len(cluster.answers[207][0]) == 4
    assert not cluster.failed


def test_a_fill_that_fails_is_blamed_and_nobody_else_notices() -> None:
    cluster = Cluster()
    cluster.run_epoch([(1, 5, 7), (2, 5, 7)], (StartView(0, *VIEWS[0]),))
    cluster.read(0, 7)
    cluster.run_epoch([], (BeginFill((StartView(1, OVERFLOWS, ()), StartView(2, COUNTED, ()))),))
    assert [each.suspects for each in cluster.failed_fills] in ([(1,)], [(1,)] * 2)
    cluster.run_epoch([(3, 5, 7)], (EndFill(is_wanted=False), BeginFill((StartView(2, COUNTED, ()),))))
    cluster.run_epoch([(4, 5, 8)], (EndFill(is_wanted=True),))
    for shard, views in enumerate(cluster.views):
        cluster.carry_out(shard, views.lookup(shard, 2, ((),), 0))
    cluster.read(0, 7)
    assert not cluster.failed and cluster.answers[7] == (((7, 3),),)
    assert sorted(row for shard in range(SHARDS) for rows in cluster.answers[shard] for row in rows) == [(7, 3), (8, 1)]


def test_a_key_that_needs_too_many_rows_is_refused_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_worker, "ROWS_ASKED_MAX", 20)
    cluster = Cluster()
    cluster.run_epoch([(n, 0, 7 if n < 100 else n % 7) for n in range(120)], (StartView(0, *VIEWS[0]),))
    for key in range(9):
        cluster.read(0, key)
    for _ in range(12):
        cluster.run_epoch([(200 + cluster.epoch, 0, 3)])
    assert not cluster.failed and cluster.refused == [7]
    assert {key: rows for key, rows in cluster.answers.items() if key != 3} == {
        key: (((key, sum(n % 7 == key for n in range(100, 120))),) if key < 7 else (),) for key in (0, 1, 2, 4, 5, 6, 8)
    }
    cluster.read(0, 7)
    assert cluster.refused == [7, 7], "at once"
    cluster.read(0, 3)
    assert cluster.answers[3] == (((3, 15),),)

    assert cluster.large == [(0,)], "it is filled beside the epochs"
    cluster.run_epoch([(300, 0, 7)], (BeginFill((StartView(0, *VIEWS[0]),)),))
    cluster.run_epoch([(301, 0, 7), (302, 0, 3)], (EndFill(is_wanted=True),))
    for key in (7, 3):
        cluster.read(0, key)
    assert cluster.refused == [7, 7] and (cluster.answers[7], cluster.answers[3]) == ((((7, 102),),), (((3, 16),),))
