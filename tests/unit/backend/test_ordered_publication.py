"""Ranges read from shared memory: what the worker would answer, whatever changes, and never two moments at once."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from backend.network.messages import Found
from backend.shared_memory.ordered_publication import CHANGED_BLOCKS_MAX
from backend.shared_memory.publication import LOOKUPS_BEFORE_SHARING, Publisher
from backend.shared_memory.segment import SegmentNames, prefix_of, remove_stale
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition
from backend.views.view_range import Range
from dataflow.expressions.expression import Column
from dataflow.expressions.source import key_function
from dataflow.plan.node import Base, Columns, Join, Node
from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import Hit
from dataflow.state.delta import Delta
from dataflow.values.ordering import bound_keys
from dataflow.values.types import BIGINT, Row, SqlType, decimal, text

DEPLOYMENT = "tests of ordered views " + os.environ.setdefault("MILLRACE_TEST_RUN", str(os.getpid()))
TYPES = (BIGINT, BIGINT, text(20), decimal(10, 2))
BASE = Base(1, TYPES, (0,))
LETTERS = ["a", "A", "ab", "b", "é", "Z", "", None]

encode = msgspec.msgpack.Encoder().encode


class Rows:
    """The base table: a bag of rows."""

    def __init__(self) -> None:
        self.rows: Counter[Row] = Counter()

    def lookup(self, table: int, columns: Columns, keys: Sequence[object]) -> list[Iterable[Row]]:
        key_of = key_function(columns, TYPES)
        return [[row for row in self.rows if key_of(row) == key] for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return list(self.rows)

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return True


class Worker:
    """An engine with one ordered view that is shared."""

    def __init__(self, node: Node, key: Columns, order: Columns) -> None:
        self.source = Rows()
        self.engine = Engine(self.source)
        self.names = SegmentNames(DEPLOYMENT, 0)
        self.publisher = Publisher(self.names)
        self.definition = ViewDefinition(node, key, (), order)
        self.view = self.engine.add_view(node, key, order)
        self.shared = SharedViews()
        self.file = ""

    def apply(self, delta: Delta) -> None:
        for row, weight in delta:
            self.source.rows[row] += weight
            if not self.source.rows[row]:
                del self.source.rows[row]
        self.engine.apply(self.engine.epoch + 1, {1: delta})
        self.publisher.publish(self.engine)

    def ask(self, key: Row, part: Range) -> list[Row]:
        self.engine.fill(self.view, [self.view.index_key(key)])
        found = self.engine.range(self.view, key, part.low, part.high, part.limit, part.descending)
        assert isinstance(found, Hit)
        self.file = self.publisher.ranged(self.view, [key])
        self.shared.learn(self.definition, Found([], self.file))
        return list(found.rows)

    def read(self, key: Row, part: Range) -> list[Row] | None:
        found = self.shared.lookup(self.definition, encode([key]), part)
        return None if found is None else self.definition.decode(found[0])


@contextmanager
def worker(node: Node = BASE, key: Columns = (1,), order: Columns = (2, 0)) -> Iterator[Worker]:
    opened = Worker(node, key, order)
    try:
        yield opened
    finally:
        opened.publisher.close()
        opened.names.close()
    assert remove_stale(prefix_of(DEPLOYMENT)) == 0


def random_range(random: Random, types: Sequence[SqlType], values: Sequence[Sequence[Any]]) -> Range:
    def bound() -> tuple[tuple[Any, ...], bool] | None:
        if random.random() < 0.2:
            return None
        count = random.randint(1, len(types))
        return bound_keys([random.choice(each) for each in values[:count]], types), random.random() < 0.5

    return Range(bound(), bound(), random.choice([None, 0, 1, 5, 70]), random.random() < 0.5)


@pytest.mark.parametrize(
    ("node", "key", "order", "seed"),
    [
        (BASE, (1,), (2, 0), 1),
        (BASE, (1,), (3,), 2),
        (BASE, (), (0,), 3),
        (Join((BASE,), outputs=(Column(1, TYPES[1]), Column(2, TYPES[2]))), (0,), (1,), 4),
        (Join((BASE,), outputs=(Column(2, TYPES[2]), Column(3, TYPES[3]))), (0,), (1,), 5),
    ],
)
def test_a_range_in_shared_memory_is_what_the_worker_answers(node: Node, key: Columns, order: Columns, seed: int) -> None:
    random = Random(seed)
    with worker(node, key, order) as opened:
        rows: dict[int, Row] = {}
        types = [node.types[column] for column in order]
        samples: dict[str, list[Any]] = {"varchar": LETTERS[:-1], "bigint": [0, 5, 20, 300], "decimal": [1, 2, 3]}
        values = [samples[kind.kind.value] for kind in types]
        keys: list[Row] = [(1,), (2,)] if key and node.types[key[0]] is BIGINT else [("a",), ("B",)] if key else [()]
        shared = 0
        for _ in range(150):
            delta: Delta = []
            for _ in range(random.choice([1, 1, 3, 40])):
                number = random.randrange(400)
                if number in rows:
                    delta.append((rows.pop(number), -1))
                if random.random() < 0.7:
                    rows[number] = (number, random.choice([1, 2, 2]), random.choice(LETTERS), random.choice([None, 1, 2, 3]))
                    delta.append((rows[number], 1))
            opened.apply(delta)
            if random.random() < 0.05:
                opened.engine.evict(opened.view, keys[:1]) if key else None
                opened.publisher.publish(opened.engine)
            for wanted in keys:
                part = random_range(random, types, values)
                found = opened.read(wanted, part)
                shared += found is not None
                assert (found is None) or found == opened.ask(wanted, part)
                if found is None:
                    opened.ask(wanted, part)
        assert shared > 100
        opened.engine.validate()


def test_a_key_that_changes_in_many_places_at_once_comes_back_when_it_is_asked_for() -> None:
    with worker(order=(0,)) as opened:
        opened.apply([((number, 1, "x", None), 1) for number in range(0, 100_000, 10)])
        part = Range(((500,), False), None, 3)
        for _ in range(LOOKUPS_BEFORE_SHARING):
            expected = opened.ask((1,), part)
        assert opened.read((1,), part) == expected == [(number, 1, "x", None) for number in (500, 510, 520)]
        opened.apply([((501, 1, "y", None), 1)])
        assert opened.read((1,), part) == [(500, 1, "x", None), (501, 1, "y", None), (510, 1, "x", None)]
        opened.apply([((number, 1, "z", None), 1) for number in range(5, 100_000, 1000)])
        assert CHANGED_BLOCKS_MAX < 100 and opened.read((1,), part) is None
        assert opened.ask((1,), part) == opened.read((1,), part)
        assert opened.publisher.memory_bytes > 0


ROWS = 150
WRITES = 200


def test_no_range_shows_two_moments_at_once() -> None:
    """Every write changes the same text in all rows; a process that reads ranges must never see two."""
    with worker(Join((BASE,), outputs=tuple(Column(n, TYPES[n]) for n in range(3))), (1,), (0,)) as opened:
        opened.apply([((number, 1, "0", None), 1) for number in range(ROWS)])
        for _ in range(LOOKUPS_BEFORE_SHARING):
            opened.ask((1,), Range(limit=1))
        command = [sys.executable, "-m", "tests.unit.backend.test_ordered_publication", opened.file]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "reading\n"
        for version in range(WRITES):
            old = [((number, 1, str(version), None), -1) for number in range(ROWS)]
            opened.apply([*old, *(((number, 1, str(version + 1), None), 1) for number in range(ROWS))])
        output, _ = process.communicate("", timeout=60)
    told = msgspec.json.decode(output, type=dict[str, int])
    assert told["reads"] > 0 and not told["wrong"], told


def read_until_told(file: str) -> dict[str, int]:
    node = Join((BASE,), outputs=tuple(Column(n, TYPES[n]) for n in range(3)))
    definition = ViewDefinition(node, (1,), (), (0,))
    shared = SharedViews()
    shared.learn(definition, Found([], file))
    told = {"reads": 0, "wrong": 0, "missed": 0}
    random = Random(1)
    print("reading", flush=True)
    newest = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        start = random.randrange(ROWS - 100)
        part = Range(((start,), False), ((start + 100,), False), None, random.random() < 0.5)
        found = shared.lookup(definition, encode([(1,)]), part)
        if found is None:
            told["missed"] += 1
            continue
        rows = definition.decode(found[0])
        versions = {row[2] for row in rows}
        told["reads"] += 1
        numbers = [row[0] for row in (reversed(rows) if part.descending else rows)]
        version = int(str(versions.pop()))
        told["wrong"] += bool(versions) or numbers != list(range(start, start + 100)) or version < newest
        newest = max(newest, version)
    return told


if __name__ == "__main__":
    print(msgspec.json.encode(read_until_told(sys.argv[1])).decode())
