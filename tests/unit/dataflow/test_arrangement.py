"""Versions, sharing and memory of arrangements."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

from dataflow.expressions.expression import Column
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Join
from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import HOLE, Hit
from dataflow.state.eviction import Evictor
from dataflow.values.types import BIGINT, INT
from tests.unit.dataflow.test_joins import Tables

A = Base(1, (INT, INT), (0,), "a")
B = Base(2, (INT, INT), (0,), "b")
COUNT = Aggregate(A, (1,), (AggregateFunction("count_star", (), BIGINT),))


def engine_with(*rows: tuple[int, int]) -> tuple[Tables, Engine]:
    tables = Tables([A, B])
    engine = Engine(tables)
    engine.apply(1, {1: tables.add(1, list(rows))})
    return tables, engine


def test_a_handle_reads_its_epoch_whatever_later_epochs_do() -> None:
    tables, engine = engine_with((1, 7), (2, 7))
    view = engine.add_view(COUNT, (0,))
    engine.upquery(view, [(7,), (8,)])
    handle = engine.open_handle(view)
    engine.apply(2, {1: tables.add(1, [(3, 7), (4, 8)])})
    later = engine.open_handle(view)
    engine.apply(3, {1: tables.add(1, [(5, 7)])})
    assert handle.lookup(7) == Hit(((7, 2),)) and handle.lookup(8) == Hit(())
    assert later.lookup(7) == Hit(((7, 3),)) and later.lookup(8) == Hit(((8, 1),))
    assert engine.lookup(view, [(7,)]) == [Hit(((7, 4),))]
    engine.close_handle(view, handle)
    assert later.lookup(7) == Hit(((7, 3),))
    engine.close_handle(view, later)
    assert not view.arrangement.history, "what no handle can see is gone"


def test_a_handle_reads_a_key_that_was_evicted_before_others_were_filled() -> None:
    """The fill is of the handle's own epoch, the eviction is recorded as of the next one."""
    _, engine = engine_with((1, 7), (2, 8))
    view = engine.add_view(COUNT, (0,))
    engine.upquery(view, [(7,)])
    handle = engine.open_handle(view)
    Evictor(engine.graph).evict(view.operator, view.arrangement, 7)
    engine.upquery(view, [(8,)])
    assert handle.lookup(7) == Hit(((7, 1),))
    engine.close_handle(view, handle)


def test_handles_read_their_epochs_between_and_after_many_others() -> None:
    tables, engine = engine_with(*((number, number % 5) for number in range(5)))
    view = engine.add_view(COUNT, (0,))
    engine.upquery(view, [(key,) for key in range(5)])
    handles = [(engine.open_handle(view), [1] * 5)]
    counts = [1] * 5
    for epoch in range(2, 60):
        key = epoch * 7 % 5
        engine.apply(epoch, {1: tables.add(1, [(epoch + 10, key)])})
        counts[key] += 1
        if epoch % 9 == 0:
            handles.append((engine.open_handle(view), list(counts)))
        if epoch % 13 == 0:
            handle, _ = handles.pop(epoch % len(handles))
            engine.close_handle(view, handle)
        for handle, expected in handles:
            assert [handle.lookup(each) for each in range(5)] == [Hit(((each, count),)) for each, count in enumerate(expected)]


def test_a_key_filled_after_the_handle_is_a_hole_to_it_and_an_evicted_one_is_not() -> None:
    tables, engine = engine_with((1, 7), (2, 8))
    view = engine.add_view(A, (1,))
    engine.upquery(view, [(7,)])
    handle = engine.open_handle(view)
    engine.apply(2, {1: tables.add(1, [(3, 8)])})
    engine.upquery(view, [(8,)])
    engine.evict(view, [(7,)])
    assert handle.lookup(8) == HOLE
    assert handle.lookup(7) == Hit(((1, 7),))
    engine.close_handle(view, handle)


def test_an_epoch_without_handles_keeps_one_version() -> None:
    tables, engine = engine_with((1, 7))
    view = engine.add_view(A, (1,))
    engine.upquery(view, [(7,)])
    for epoch in range(2, 12):
        engine.apply(epoch, {1: tables.add(1, [(epoch, 7)])})
    assert not view.arrangement.history and not view.arrangement.before


def test_queries_that_look_up_the_same_columns_share_one_arrangement() -> None:
    _, engine = engine_with()
    for output in range(4):
        engine.add_view(Join((A, B), ((1, 2),), None, (Column(0, INT), Column(output, INT))), (0,))
    base = engine.graph.bases[2]
    assert [list(each.columns) for each in base.arrangements()] == [[0]]
    assert base.stores[(0,)].users == 4


def test_a_view_of_an_aggregate_by_its_group_is_the_aggregates_own_state() -> None:
    _, engine = engine_with((1, 7))
    view = engine.add_view(COUNT, (0,))
    assert view.arrangement is view.operator.state and not view.operator.stores


MEMORY = """
import gc, os
from backend.bench.dataflow import Vote

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

class Decoding:
    # Rows are made when they are read, as from disk.

    def lookup(self, table, columns, keys):
        return [() if table == 2 else [(int(str(key)), f"title {key}")] for key in keys]

    def is_indexed(self, table, columns):
        return True

vote = Vote(100_000)
vote.engine.graph.source = Decoding()
gc.collect()
before = resident()
vote.fill()
gc.collect()
print(vote.engine.measure().total_bytes / (resident() - before))
"""


def test_measured_bytes_are_within_30_percent_of_what_the_process_grew() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, env={**os.environ})
    assert 0.7 < float(done.stdout) < 1.3, done.stdout


def test_eviction_reaches_the_limit_and_spares_what_was_read() -> None:
    tables, engine = engine_with(*((n, n % 500) for n in range(2000)))
    view = engine.add_view(COUNT, (0,))
    engine.upquery(view, [(n,) for n in range(500)])
    view.arrangement.referenced.clear()
    engine.lookup(view, [(n,) for n in range(50)])
    before = engine.measure()
    report = engine.enforce(before.total_bytes // 2)
    assert report.total_bytes <= before.total_bytes // 2 and not report.only_full_left
    assert all(isinstance(found, Hit) for found in engine.lookup(view, [(n,) for n in range(50)]))
    engine.apply(2, {1: tables.add(1, [(5000, 3)])})
    engine.validate()


def test_full_state_beyond_the_limit_is_reported() -> None:
    _, engine = engine_with(*((n, n) for n in range(100)))
    view = engine.add_view(A, ())
    assert view.is_full and view.reason
    report = engine.enforce(10)
    assert report.only_full_left and report.full_bytes > 10
    gc.collect()
