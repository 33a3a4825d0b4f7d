"""What leaves when memory is short: views and the state below them, in step."""

from __future__ import annotations

import random
import sys

import pytest

from backend.bench.dataflow import STORIES_WITH_VOTE_COUNT, VOTE_COUNT, Stories
from dataflow.plan.node import Aggregate, Base
from dataflow.runtime.engine import Engine, View
from dataflow.state import memory
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.eviction import Evictor

KEYS = 2_000


def filled() -> tuple[Engine, View]:
    engine = Engine(Stories(KEYS))
    view = engine.add_view(STORIES_WITH_VOTE_COUNT, (0,))
    engine.upquery(view, [(key,) for key in range(KEYS)])
    return engine, view


def state_below(engine: Engine) -> tuple[Arrangement, Arrangement]:
    """The vote counts, and the stories that are kept for when they change."""
    operators = {type(each.node): each for each in engine.graph.operators.values() if each.arrangements()}
    (stories,) = operators[Base].arrangements()
    (counts,) = operators[Aggregate].arrangements()
    return counts, stories


def test_a_view_over_other_state_keeps_its_share_of_keys() -> None:
    engine, view = filled()
    full_bytes = engine.measure().total_bytes
    arrangements = [each for operator in engine.graph.operators.values() for each in operator.arrangements()]
    assert len(arrangements) > 1, "there is state below the view"
    engine.reference(view, list(range(KEYS // 10)))
    report = engine.enforce(full_bytes // 5)
    assert report.total_bytes <= full_bytes // 5
    assert len(view.arrangement.index) > KEYS * 0.15, "a fifth of all, or nearly"
    assert all(key in view.arrangement.index for key in range(KEYS // 10)), "what was read is spared"
    engine.validate()


def test_what_only_saves_reading_a_table_leaves_first() -> None:
    engine, view = filled()
    engine.enforce(engine.measure().total_bytes)
    counts, stories = state_below(engine)
    engine.enforce(engine.measure().total_bytes * 9 // 10)
    assert len(view.arrangement.index) == len(counts.index) == KEYS and len(stories.index) < KEYS
    engine.validate()


def test_state_below_a_view_leaves_with_the_keys_it_was_kept_for() -> None:
    engine, view = filled()
    counts, _ = state_below(engine)
    engine.enforce(engine.measure().total_bytes // 3)
    assert 0 < len(view.arrangement.index) < KEYS
    assert set(counts.index) == set(view.arrangement.index)
    engine.validate()


def test_state_that_another_view_needs_stays() -> None:
    engine, view = filled()
    other = engine.add_view(VOTE_COUNT, (0,))
    counts, _ = state_below(engine)
    assert other.arrangement is counts
    engine.evict(view, [(0,)])
    assert 0 in counts.index
    engine.upquery(view, [(0,)])
    Evictor(engine.graph).evict_with_origins(view.operator, view.arrangement, 0)
    assert 0 in counts.index, "it is a key of a view itself"


def test_keys_leave_in_the_order_of_their_last_reads() -> None:
    engine, view = filled()
    for key in (5, 3, 1):
        engine.lookup(view, [(key,)])
        engine.enforce(1 << 40)
    index = view.arrangement.index
    assert list(index)[:3] == [0, 2, 4] and list(index)[-3:] == [5, 3, 1]
    while len(index) > 2:
        engine.enforce(engine.measure().total_bytes - 1)
    assert set(index) == {3, 1}


def test_many_keys_with_many_rows_are_measured_by_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, looked_at = random.Random(1), []
    arrangement = Arrangement((0,), ArrangementKind.BAG, lambda row: row[0], "rows")
    for key in range(1000):
        rows = range(chance.randrange(400))
        arrangement.index[key] = {(key, n, f"row {1000 * key + n}", "x" * chance.randrange(40)): 1 for n in rows}
    exact = sum(memory.deep_bytes(key, 3, sys.maxsize) + memory.deep_bytes(rows, 2, sys.maxsize) for key, rows in arrangement.index.items())
    share = memory._share
    monkeypatch.setattr(memory, "_share", lambda value, held: looked_at.append(1) or share(value, held + 1))
    assert memory.Meter().mean(arrangement) * 1000 == pytest.approx(exact, rel=0.15)
    assert len(looked_at) < 20_000, "it would hold a worker's loop"


def test_far_from_the_limit_one_sample_is_taken_anew_for_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = filled()
    taken = engine.enforce(1 << 40).total_bytes
    measured: list[Arrangement] = []
    measure = memory.Meter._measure
    monkeypatch.setattr(memory.Meter, "_measure", lambda self, each, count: measured.append(each) or measure(self, each, count))
    engine.enforce(1 << 40)
    assert len(measured) == 1
    engine.enforce(taken)
    measured.clear()
    engine.enforce(taken)
    assert len(measured) == sum(len(each.arrangements()) for each in engine.graph.operators.values()) == 3, "near it, more of them are"
