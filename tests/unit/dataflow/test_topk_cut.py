"""A top-k that keeps only the first rows of a partition shows what one would that keeps all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from unittest.mock import patch

import pytest

from dataflow.code import topk_code
from dataflow.expressions.expression import Column
from dataflow.expressions.source import Key
from dataflow.plan.node import Base, Columns, Order, TopK
from dataflow.runtime.engine import Engine, View
from dataflow.state.arrangement import Hit, Hole
from dataflow.values.ordering import sort_function
from dataflow.values.types import INT, Row

TABLE = Base(1, (INT, INT, INT), (0,), "votes")


class Rows:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def lookup(self, table: int, columns: Columns, keys: Sequence[Key]) -> list[Iterable[Row]]:
        (column,) = columns
        return [[row for row in self.rows if row[column] == key] for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return self.rows

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return True


def _changed(
    engine: Engine, source: Rows, view: View, epoch: int, gone: Sequence[Row], come: Sequence[Row], random: Random
) -> list[Hit | Hole]:
    """What the keys 0 and 1 have after an epoch, and perhaps an eviction or fills."""
    source.rows = [row for row in source.rows if row not in gone] + [*come]
    engine.apply(epoch, {1: [*((row, -1) for row in gone), *((row, 1) for row in come)]})
    if random.random() < 0.1:
        engine.evict(view, [(random.randrange(2),)])
    if random.random() < 0.5:
        engine.upquery(view, [(0,), (1,)])
    return engine.lookup(view, [(0,), (1,)])


@pytest.mark.parametrize("seed", range(20))
def test_windows_are_right_whatever_comes_and_goes(seed: int) -> None:
    random, source = Random(seed), Rows()
    engine, top = Engine(source), TopK(TABLE, (1,), (Order(Column(2, INT)),), 2, seed % 2)
    sort_key, most = sort_function(top.order), 0
    with patch.multiple(topk_code, KEPT_MIN=0, KEPT_WINDOWS=1):
        view = engine.add_view(top, (1,))
        for epoch in range(1, 100):
            gone = random.sample(source.rows, min(len(source.rows), random.randrange(4) if epoch < 60 else 3))
            come: list[Row] = [(100 * epoch + n, random.randrange(2), random.randrange(5)) for n in range(random.randrange(5 if epoch < 60 else 2))]
            for key, found in enumerate(_changed(engine, source, view, epoch, gone, come, random)):
                if isinstance(found, Hit):
                    rows = sorted([row for row in source.rows if row[1] == key], key=sort_key)
                    assert sorted(found.rows) == sorted(rows[top.offset : top.offset + 2])
            most = max([most, *(len(entries) for part in view.arrangement.index.values() for entries, _, _ in part.values())])
    assert most <= 2 * (2 + top.offset), "no more rows are kept than that"


def test_a_top_k_of_many_rows_keeps_few() -> None:
    source = Rows()
    source.rows = [(number, 1, -number) for number in range(50_000)]
    engine = Engine(source)
    view = engine.add_view(TopK(TABLE, (1,), (Order(Column(2, INT)),), 3), (1,))
    assert engine.upquery(view, [(1,)]) == [Hit(((49_999, 1, -49_999), (49_998, 1, -49_998), (49_997, 1, -49_997)))]
    assert engine.measure().total_bytes < 1 << 20


class OrderedRows(Rows):
    """Has its rows in the order of their key, and counts those that are read that way."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0

    def in_key_order(self, table: int, descending: bool) -> Iterable[Row]:
        for row in sorted(self.rows, reverse=descending):
            self.read += 1
            yield row


BY_KEY = (Order(Column(0, INT), True),)


def test_a_top_k_in_the_order_of_the_key_reads_its_first_rows_only() -> None:
    source = OrderedRows()
    source.rows = [(number, number % 2, 0) for number in range(50_000)]
    engine = Engine(source)
    view = engine.add_view(TopK(TABLE, (1,), BY_KEY, 2), (1,))
    with patch.object(source, "lookup", side_effect=AssertionError):
        assert engine.upquery(view, [(1,)]) == [Hit(((49_999, 1, 0), (49_997, 1, 0)))]
    assert source.read < 2 * topk_code.LED_MIN + 200


def test_a_partition_with_few_rows_is_looked_up_by_its_key() -> None:
    source = OrderedRows()
    source.rows = [(number, int(number in (5, 9)), 0) for number in range(30_000)]
    engine = Engine(source)
    view = engine.add_view(TopK(TABLE, (1,), BY_KEY, 3), (1,))
    assert engine.upquery(view, [(1,), (2,)]) == [Hit(((9, 1, 0), (5, 1, 0))), Hit(())]
    assert source.read < 2 * topk_code.LEAD_ROWS_MAX + 3000


@pytest.mark.parametrize("seed", range(20))
def test_windows_that_are_read_in_order_are_right_whatever_comes_and_goes(seed: int) -> None:
    random, source = Random(seed), OrderedRows()
    engine, top = Engine(source), TopK(TABLE, (1,), BY_KEY, 3, seed % 2)
    with patch.multiple(topk_code, KEPT_MIN=0, KEPT_WINDOWS=1, LED_MIN=0, LEAD_ROWS_MAX=seed % 8):
        view = engine.add_view(top, (1,))
        for epoch in range(1, 100):
            gone = random.sample(source.rows, min(len(source.rows), random.randrange(4)))
            come: list[Row] = [(100 * epoch + n, random.randrange(2), 0) for n in range(random.randrange(5))]
            for key, found in enumerate(_changed(engine, source, view, epoch, gone, come, random)):
                if isinstance(found, Hit):
                    rows = sorted([row for row in source.rows if row[1] == key], reverse=True)
                    assert sorted(found.rows) == sorted(rows[top.offset : top.offset + 3])
