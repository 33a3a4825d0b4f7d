"""Views and keys that are filled elsewhere, from a copy of the tables, while epochs go on; and fills that are stopped.

The copy is followed by later epochs, several at once, before what it has is taken over.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow.runtime.engine import Engine, View
from dataflow.runtime.loading import Budget, OverBudget
from dataflow.state.delta import Delta
from tests.property import dataflow_plans as plans
from tests.property.dataflow_plans import Action, MemorySource
from tests.property.test_dataflow import Run

EXAMPLES = int(os.environ.get("MILLRACE_EXAMPLES", "200"))
QUIET = settings(
    print_blob=True,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@dataclass(frozen=True)
class BeginView:
    """A view that is prepared elsewhere; nothing is stopped by it, whatever it reads."""

    added: plans.AddView


@dataclass(frozen=True)
class BeginKeys:
    """Keys of a view that are filled elsewhere."""

    view: int
    keys: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class Follow:
    which: int


@dataclass(frozen=True)
class Finish:
    which: int


@dataclass(frozen=True)
class AddWithin:
    """A view that may read so many rows and no more."""

    added: plans.AddView
    rows: int


@dataclass(frozen=True)
class ReadWithin:
    """Keys that are filled together, as far as so many rows go."""

    view: int
    keys: tuple[tuple[object, ...], ...]
    rows: int


BackgroundAction = Action | BeginView | BeginKeys | Follow | Finish | AddWithin | ReadWithin


@dataclass
class Fill:
    """`view` is the one whose keys are filled, None if the fill is for a view that is not there yet."""

    engine: Engine
    source: MemorySource
    prepared: View
    view: View | None
    changes: dict[int, Delta] = field(default_factory=dict)


class BackgroundRun(Run):
    def __init__(self) -> None:
        super().__init__()
        self.fills: list[Fill] = []

    def act(self, action: BackgroundAction) -> None:
        match action:
            case BeginView(added):
                fill = self.begin()
                prepared = fill.add_view(added.node, added.key)
                self.fills.append(Fill(fill, fill.graph.source, prepared, None))  # type: ignore[arg-type]
            case BeginKeys(number, keys) if self.views:
                view = self.views[number % len(self.views)]
                fill = self.begin()
                prepared = fill.add_view(view.node, view.key)
                fill.upquery(prepared, [self.key_for(view, key) for key in keys])
                self.fills.append(Fill(fill, fill.graph.source, prepared, view))  # type: ignore[arg-type]
            case Follow(which) if self.fills:
                self.follow(self.fills[which % len(self.fills)])
            case Finish(which) if self.fills:
                self.finish(self.fills.pop(which % len(self.fills)))
            case AddWithin(added, rows):
                self.add_within(added, rows)
            case ReadWithin(number, keys, rows) if self.views:
                view = self.views[number % len(self.views)]
                wanted = [self.key_for(view, key) for key in keys]
                try:
                    with self.engine.spending(Budget(rows)):
                        found = self.engine.upquery(view, wanted)
                    assert self.engine.lookup(view, wanted) == found
                except OverBudget:
                    pass
                assert not any(self.engine.graph.prefetched.values())
            case plans.RemoveView() if self.views:
                removed = self.views[action.view % len(self.views)]
                self.fills = [fill for fill in self.fills if fill.view is not removed]
                self.do(action)
                return
            case BeginView() | BeginKeys() | Follow() | Finish() | ReadWithin():
                pass
            case _:
                self.do(action)
                return
        self.check()
        self.engine.validate()

    def begin(self) -> Engine:
        source = MemorySource()
        source.tables = {table: Counter(rows) for table, rows in self.source.tables.items()}
        return Engine(source)

    def write(self, write: plans.Write) -> None:
        before = {table: Counter(rows) for table, rows in self.source.tables.items()}
        super().write(write)
        for table, rows in self.source.tables.items():
            changed = [(row, rows[row] - before[table][row]) for row in {*rows, *before[table]}]
            for fill in self.fills:
                fill.changes.setdefault(table, []).extend(change for change in changed if change[1])

    def follow(self, fill: Fill) -> None:
        changes, fill.changes = fill.changes, {}
        fill.source.tables = {table: Counter(rows) for table, rows in self.source.tables.items()}
        fill.engine.apply(self.epoch, changes)
        fill.engine.validate()

    def finish(self, fill: Fill) -> None:
        self.follow(fill)
        held = {key: fill.prepared.arrangement.lookup(key) for key in fill.prepared.arrangement.index}
        if fill.view is None:
            view = self.engine.add_view(fill.prepared.node, fill.prepared.key, prepared=fill.engine)
            self.views.append(view)
        else:
            view = fill.view
            self.engine.take_over(fill.engine)
        for key, hit in held.items():
            assert Counter(view.arrangement.lookup(key).rows) == Counter(hit.rows)  # type: ignore[union-attr]

    def add_within(self, added: plans.AddView, rows: int) -> None:
        before = self.shape()
        try:
            with self.engine.spending(Budget(rows)):
                self.views.append(self.engine.add_view(added.node, added.key))
        except OverBudget:
            assert self.shape() == before

    def shape(self) -> object:
        """All operators with what they hold and are used for, without what was filled on the way."""
        return {
            operator.number: (
                len(operator.consumers),
                sorted((columns, each.users, each.views, each.recorders) for columns, each in operator.stores.items()),
                sorted((owner.number, each.columns) for owner, each in operator.uses),
            )
            for operator in self.engine.graph.operators.values()
        }


def budgets() -> st.SearchStrategy[int]:
    return st.integers(0, 8) | st.just(1000)


@st.composite
def histories(draw: st.DrawFn) -> list[BackgroundAction]:
    keys = st.lists(plans.reads().map(lambda read: read.key), min_size=1, max_size=4).map(tuple)
    which = st.integers(0, 3)
    rest = draw(
        st.lists(
            st.one_of(
                plans.writes(), plans.writes(), plans.reads(), plans.reads(),
                st.builds(plans.Evict, which, st.integers(0, 9)),
                st.builds(plans.EvictInternal, st.integers(0, 99)),
                st.builds(plans.RemoveView, which),
                st.builds(BeginView, plans.views()),
                st.builds(BeginKeys, which, keys),
                st.builds(Follow, which), st.builds(Finish, which), st.builds(Finish, which),
                st.builds(AddWithin, plans.views(), budgets()),
                st.builds(ReadWithin, which, keys, budgets()), st.builds(ReadWithin, which, keys, budgets()),
            ),
            max_size=16,
        )
    )  # fmt: skip
    return [draw(plans.writes()), draw(plans.views()), *rest]


def run(history: list[BackgroundAction]) -> BackgroundRun:
    state = BackgroundRun()
    for action in history:
        state.act(action)
    while state.fills:
        state.finish(state.fills.pop())
        state.check()
        state.engine.validate()
    return state


@given(histories())
@QUIET
def test_what_was_filled_elsewhere_equals_evaluation_from_scratch_at_every_epoch(history: list[BackgroundAction]) -> None:
    run(history)


@given(histories())
@settings(QUIET, max_examples=100)
def test_stopped_and_prepared_views_leave_nothing_behind(history: list[BackgroundAction]) -> None:
    state = run(history)
    for view in state.views:
        state.engine.remove_view(view)
    graph = state.engine.graph
    assert not graph.operators and not graph.bases and not graph.recorded and not graph.unloaded


@pytest.mark.slow
@given(histories())
@settings(QUIET, max_examples=10_000)
def test_ten_thousand_histories_with_fills_elsewhere(history: list[BackgroundAction]) -> None:
    run(history)
