"""`millrace bench sharing`: 50 queries that join the same tables on the same keys.

With sharing they are views of one engine, which holds each index once. Without, each has an
engine of its own. Both get the same reads and the same writes.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterable, Iterator, Sequence

from backend.bench import Advance, Measurement
from dataflow.expressions.expression import Column, Literal
from dataflow.expressions.source import Key
from dataflow.functions import call
from dataflow.plan.node import Base, Columns, Join
from dataflow.runtime.engine import Engine, View
from dataflow.state.delta import Delta
from dataflow.values.types import INT, Row, text

QUERIES = 50
USERS = 2_000
POSTS = 40_000
WRITES = 20_000
EPOCH_WRITES = 100

NAME = text(60)
POST = Base(1, (INT, INT, INT, NAME), (0,), "posts")
USER = Base(2, (INT, NAME), (0,), "users")


def query(number: int) -> Join:
    """Posts of a user with the user's name, from a score upwards; each query has its own."""
    outputs = (Column(1, INT), Column(0, INT), Column(5, NAME))
    above = call("<", Literal(number * 10, INT), Column(2, INT))
    return Join((POST, USER), ((1, 4),), above, outputs)


class Tables:
    def __init__(self) -> None:
        draw = random.Random(1)
        self.users: dict[int, Row] = {user: (user, f"the name of user {user}") for user in range(USERS)}
        self.posts: dict[int, list[Row]] = {user: [] for user in range(USERS)}
        for post in range(POSTS):
            self.add((post, draw.randrange(USERS), draw.randrange(1000), f"the title of post {post}"))

    def add(self, row: Row) -> None:
        user = row[1]
        assert isinstance(user, int)
        self.posts[user].append(row)

    def lookup(self, table: int, columns: Columns, keys: Sequence[Key]) -> list[Iterable[Row]]:
        if table == USER.table:
            return [(self.users[key],) for key in keys]
        assert columns == (1,)
        return [self.posts[key] for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return self.users.values() if table == USER.table else (row for rows in self.posts.values() for row in rows)

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return True


def install(engine: Engine, number: int) -> tuple[View, float]:
    """Add a query and make its code; how long that took, in ms."""
    start = time.perf_counter()
    view = engine.add_view(query(number), (0,))
    for base in (POST, USER):
        engine.graph.step(base.table)
    return view, (time.perf_counter() - start) * 1000


def measure(engines: Sequence[Engine], views: Sequence[tuple[Engine, View]], tables: Tables) -> tuple[float, float]:
    """(bytes of all indexes and views, µs for each write) after reading every user in every view."""
    for engine, view in views:
        engine.upquery(view, [(user,) for user in range(USERS)])
    draw = random.Random(2)
    epochs: list[Delta] = [
        [((POSTS + epoch * EPOCH_WRITES + n, draw.randrange(USERS), draw.randrange(1000), "a new post"), 1) for n in range(EPOCH_WRITES)]
        for epoch in range(WRITES // EPOCH_WRITES)
    ]
    gc.collect()
    spent = 0.0
    for number, delta in enumerate(epochs, 1):
        for row, _ in delta:
            tables.add(row)
        start = time.perf_counter()
        for engine in engines:
            engine.apply(number, {POST.table: delta})
            for _ in engine.take_touched():
                pass
        spent += time.perf_counter() - start
    return float(sum(engine.measure().total_bytes for engine in engines)), spent / WRITES * 1e6


def run(advance: Advance) -> Iterator[Measurement]:
    advance("installing, shared", 0.1)
    tables = Tables()
    shared = Engine(tables)
    installed = [install(shared, number) for number in range(QUERIES)]
    advance("shared", 0.2)
    shared_bytes, shared_us = measure([shared], [(shared, view) for view, _ in installed], tables)
    indexes = sum(len(operator.stores) for operator in shared.graph.bases.values())
    advance("not shared", 0.5)
    tables = Tables()
    engines = [Engine(tables) for _ in range(QUERIES)]
    alone = [(engine, install(engine, number)[0]) for number, engine in enumerate(engines)]
    alone_bytes, alone_us = measure(engines, alone, tables)
    times = [milliseconds for _, milliseconds in installed[1:]]
    yield Measurement("sharing", "base_indexes", indexes, "indexes", {"not shared": float(2 * QUERIES)})
    yield Measurement("sharing", "memory", shared_bytes / 1e6, "MB", {"not shared": alone_bytes / 1e6})
    yield Measurement("sharing", "update", shared_us, "µs", {"not shared": alone_us})
    yield Measurement("sharing", "install_max", max(times), "ms", {})
    yield Measurement("sharing", "install_mean", sum(times) / len(times), "ms", {})
