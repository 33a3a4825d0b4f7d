"""The dataflow against from-scratch evaluation, under random plans, writes, reads and evictions."""

from __future__ import annotations

import os
from collections import Counter
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings

from dataflow.code import topk_code
from dataflow.expressions.source import key_function
from dataflow.runtime.engine import Engine, View
from dataflow.state.arrangement import Handle, Hit, Hole
from dataflow.state.eviction import Evictor
from dataflow.values.types import Kind, Row
from tests.property.dataflow_oracle import Sqlite, evaluate
from tests.property.dataflow_plans import (
    BASES,
    Action,
    AddView,
    CloseHandle,
    Evict,
    EvictInternal,
    MakeRoom,
    MemorySource,
    OpenHandle,
    Read,
    RemoveView,
    Write,
    histories,
)

EXAMPLES = int(os.environ.get("MILLRACE_EXAMPLES", "300"))
QUIET = settings(
    print_blob=True,
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


class Run:
    """An engine and its base tables, driven by a history; after every epoch all views are checked."""

    def __init__(self, sqlite: bool = False) -> None:
        self.source = MemorySource()
        self.engine = Engine(self.source)
        self.sqlite = Sqlite(BASES) if sqlite else None
        self.views: list[View] = []
        self.handles: list[tuple[View, Handle, dict[object, Hit | Hole]]] = []
        self.epoch = 0

    def do(self, action: Action) -> None:
        match action:
            case Write():
                self.write(action)
            case AddView():
                self.views.append(self.engine.add_view(action.node, action.key))
            case RemoveView() if self.views:
                view = self.views.pop(action.view % len(self.views))
                for each in [each for each in self.handles if each[0] is view]:
                    self.close_handle(each)
                self.engine.remove_view(view)
            case OpenHandle() if self.views:
                view = self.views[action.view % len(self.views)]
                seen = {key: view.arrangement.lookup(key) for key in view.arrangement.index}
                self.handles.append((view, self.engine.open_handle(view), seen))
            case CloseHandle() if self.handles:
                self.close_handle(self.handles[action.which % len(self.handles)])
            case Read() if self.views:
                self.read(self.views[action.view % len(self.views)], action.key)
            case Evict() if self.views:
                view = self.views[action.view % len(self.views)]
                keys = list(view.arrangement.index)
                if keys and not view.is_full:
                    Evictor(self.engine.graph).evict(view.operator, view.arrangement, keys[action.which % len(keys)])
            case EvictInternal():
                self.evict_internal(action.which)
            case MakeRoom():
                limit_bytes = self.engine.measure().total_bytes * action.percent // 100
                report = self.engine.enforce(limit_bytes)
                assert report.total_bytes <= limit_bytes or report.only_full_left
        self.check()
        self.engine.validate()

    def close_handle(self, held: tuple[View, Handle, dict[object, Hit | Hole]]) -> None:
        self.handles.remove(held)
        self.engine.close_handle(held[0], held[1])

    def write(self, write: Write) -> None:
        deltas: dict[int, list[tuple[Row, int]]] = {}

        def change(table: int, row: Row, weight: int) -> None:
            deltas.setdefault(table, []).append((row, weight))
            self.source.tables[table][row] += weight
            if not self.source.tables[table][row]:
                del self.source.tables[table][row]

        for table, row in write.puts:
            key_of = key_function(BASES[table].primary_key, BASES[table].types)
            for old in [each for each in self.source.tables[table] if key_of(each) == key_of(row)]:
                change(table, old, -1)
            change(table, row, 1)
        for table, which in write.removes:
            present = sorted(self.source.tables[table], key=repr)
            if present:
                change(table, present[which % len(present)], -1)
        self.epoch += 1
        self.engine.apply(self.epoch, deltas)

    def read(self, view: View, key: tuple[object, ...]) -> None:
        values = self.key_for(view, key)
        found = self.engine.upquery(view, [values])[0]
        assert self.engine.lookup(view, [values])[0] == found

    def key_for(self, view: View, key: tuple[object, ...]) -> tuple[Any, ...]:
        """The values as far as the columns of the view's key can have them."""
        values = []
        for column, given_value in zip(view.key, key, strict=False):
            is_text = view.node.types[column].kind is Kind.VARCHAR
            values.append(given_value if given_value is None or isinstance(given_value, str) == is_text else None)
        return tuple(values)

    def evict_internal(self, which: int) -> None:
        candidates = [
            (operator, arrangement, key)
            for operator in self.engine.graph.operators.values()
            for arrangement in operator.arrangements()
            if not arrangement.full
            for key in arrangement.index
        ]
        if candidates:
            operator, arrangement, key = candidates[which % len(candidates)]
            Evictor(self.engine.graph).evict(operator, arrangement, key)

    def check(self) -> None:
        """Every filled key of every arrangement, views and internal ones, equals the oracle's."""
        for view, handle, seen in self.handles:
            # A key filled later in the handle's own epoch may be known to it; no other may have changed.
            for key in {*seen, *(view.arrangement.index if view.is_full else ())}:
                found, then = handle.lookup(key), seen.get(key, Hit(()))
                assert isinstance(found, Hit) and isinstance(then, Hit)
                assert Counter(found.rows) == Counter(then.rows), (key, found, then)
        expected: dict[int, Counter[Row]] = {}
        if self.sqlite is not None:
            self.sqlite.set(self.source.tables)
        for operator in self.engine.graph.operators.values():
            if not any(each.index or each.full for each in operator.arrangements()):
                continue
            if self.sqlite is not None:
                rows = self.sqlite.evaluate(operator.node)
            else:
                rows = evaluate(operator.node, self.source.tables)
            expected[operator.number] = rows
            for arrangement in operator.arrangements():
                wanted: dict[object, Counter[Row]] = {}
                for row, weight in rows.items():
                    wanted.setdefault(arrangement.key_of(row), Counter())[row] += weight
                keys = set(arrangement.index) | (set(wanted) if arrangement.full else set())
                for key in keys:
                    found = arrangement.lookup(key)
                    assert isinstance(found, Hit)
                    assert plain(Counter(found.rows)) == plain(wanted.get(key, Counter())), (operator.label, arrangement.columns, key)


def plain(rows: Counter[Row]) -> Counter[Row]:
    """SQLite has no DECIMAL."""
    result: Counter[Row] = Counter()
    for row, weight in rows.items():
        result[tuple(int(v) if isinstance(v, Decimal) and v == v.to_integral_value() else v for v in row)] += weight
    return result


def run(history: list[Action], sqlite: bool = False) -> Run:
    state = Run(sqlite)
    for action in history:
        state.do(action)
    return state


@given(histories())
@QUIET
def test_every_filled_key_equals_evaluation_from_scratch(history: list[Action]) -> None:
    run(history)


@given(histories())
@QUIET
def test_filled_keys_are_right_where_a_top_k_keeps_no_more_rows_than_two_windows(history: list[Action]) -> None:
    with patch.multiple(topk_code, KEPT_MIN=0, KEPT_WINDOWS=1):
        run(history)


@given(histories(sqlite=True))
@QUIET
def test_every_filled_key_equals_what_sqlite_computes(history: list[Action]) -> None:
    run(history, sqlite=True)


@pytest.mark.slow
@given(histories())
@settings(QUIET, max_examples=10_000)
def test_ten_thousand_histories_equal_evaluation_from_scratch(history: list[Action]) -> None:
    run(history)


@given(histories())
@settings(QUIET, max_examples=100)
def test_removing_all_views_leaves_nothing_behind(history: list[Action]) -> None:
    state = run(history)
    for handle in list(state.handles):
        state.close_handle(handle)
    for view in state.views:
        state.engine.remove_view(view)
    assert not state.engine.graph.operators and not state.engine.graph.bases and not state.engine.graph.recorded
