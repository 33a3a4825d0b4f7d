"""What a worker shares of its views, beside what it answers itself."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from backend.execution.embedded import open_embedded
from backend.execution.local_store import LocalStore
from backend.network.messages import Found
from backend.shared_memory.publication import LARGE_BYTES, LOOKUPS_BEFORE_SHARING
from backend.shared_memory.segment import Segment, SegmentNames, prefix_of, remove_stale
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition, packed
from backend.views.view_host import ViewHost
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Join
from dataflow.schema import Table
from dataflow.values.types import BIGINT, Row

DEPLOYMENT = f"tests of publication {os.getpid()}"

encode = msgspec.msgpack.Encoder().encode


class Shop:
    """An embedded database whose only worker shares its views."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.Runner()
        self.database = database = self.loop.run(open_embedded(folder))
        self.plans = PlanCache()
        assert isinstance(database.store, LocalStore)
        self.store = database.store
        self.host = ViewHost(self.store.shards[0], 1 << 30, SegmentNames(DEPLOYMENT, 0))
        self.store._views = self.host
        self.shared = SharedViews()

    def run(self, sql: str) -> None:
        if sql.startswith(("CREATE", "ALTER", "DROP")):
            self.loop.run(self.database.define(sql, "shop", DEFAULT_SETTINGS))
        else:
            plan, values = self.plans.plan_text(sql, self.database.catalog, "shop", DEFAULT_SETTINGS)
            self.loop.run(self.database.execute(plan, values))

    def table(self, name: str) -> Table:
        return self.database.catalog.table("shop", name)

    def ask(self, definition: ViewDefinition, *keys: Row) -> list[list[Row]]:
        """Ask the worker, as a client does that has found nothing."""
        versions = self.store.table_versions
        assert self.host.add(definition.request(), versions)
        found = self.host.lookup_shared(definition.name, encode(keys))
        assert found is not None
        self.shared.learn(definition, Found(*found))
        return [definition.decode(each) for each in found[0]]

    def read(self, definition: ViewDefinition, *keys: Row) -> list[list[Row]] | None:
        """What is in shared memory."""
        found = self.shared.lookup(definition, encode(keys))
        return None if found is None else [definition.decode(each) for each in found]

    def share(self, definition: ViewDefinition, *keys: Row) -> None:
        for _ in range(LOOKUPS_BEFORE_SHARING):
            self.ask(definition, *keys)


@contextmanager
def shop(folder: Path) -> Iterator[Shop]:
    opened = Shop(folder)
    opened.run("CREATE DATABASE shop")
    opened.run("CREATE TABLE sales (id INT NOT NULL PRIMARY KEY, item VARCHAR(20), price INT, note TEXT)")
    try:
        yield opened
    finally:
        opened.host.close()
        opened.store.close()
        opened.loop.close()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert remove_stale(prefix_of(DEPLOYMENT)) == 0


def sales(shop: Shop) -> Base:
    table = shop.table("sales")
    return Base(table.id, tuple(column.type for column in table.columns), (0,))


def by_id(shop: Shop) -> ViewDefinition:
    return ViewDefinition(Join((sales(shop),)), (0,), (shop.table("sales"),))


def by_item(shop: Shop, key: tuple[int, ...] = (0,)) -> ViewDefinition:
    """The number of sales of each item."""
    node = Aggregate(sales(shop), (1,), (AggregateFunction("count", (), BIGINT),))
    return ViewDefinition(node, key, (shop.table("sales"),))


def test_a_view_is_shared_once_it_is_asked_for_often(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        here.run("INSERT INTO sales VALUES (1, 'tea', 3, NULL), (2, 'tea', 4, '')")
        view = by_id(here)
        here.ask(view, (1,))
        assert here.read(view, (1,)) is None
        here.share(view, (1,))
        assert here.read(view, (1,)) == [[(1, "tea", 3, None)]]
        assert here.read(view, (2,)) is None
        assert here.read(view, (1,), (2,)) is None
        assert here.ask(view, (7,), (2,)) == [[], [(2, "tea", 4, "")]]
        assert here.read(view, (2,), (7,), (1,)) == [[(2, "tea", 4, "")], [], [(1, "tea", 3, None)]]


def test_packed_keys_have_the_same_rows_whether_they_are_shared_or_not(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        here.run("INSERT INTO sales VALUES " + ", ".join(f"({key}, 'i{key}', {key}, NULL)" for key in range(0, 300, 2)))
        view = by_id(here)

        def ask(keys: Sequence[int] | np.ndarray[Any, Any]) -> list[list[Row]]:
            wanted = packed(keys)
            assert wanted is not None
            found = here.host.lookup_shared(view.name, wanted)
            assert found is not None
            [rows], _ = found
            return view.decode_all(rows)

        def expected(keys: Iterable[int]) -> list[list[Row]]:
            return [[(key, f"i{key}", key, None)] if 0 <= key < 300 and key % 2 == 0 else [] for key in keys]

        here.ask(view, (0,))
        for keys in ([4], [2, 3, 4, -1], list(range(320)), [1 << 62, 5, 5, 8], []):
            for _ in range(2):  # the first may fill what the second finds
                assert ask(keys) == expected(keys)
        numbers = np.arange(100, 140, dtype=np.int32)
        assert ask(numbers) == expected(numbers.tolist())
        here.run("UPDATE sales SET price = 9 WHERE id = 100")
        assert ask(numbers)[0] == [(100, "i100", 9, None)]
    for strange in ([1.0], [(1,)], [1 << 63], np.array([1.5]), np.array([[1]]), [None]):
        assert packed(strange) is None  # type: ignore[arg-type]


def test_every_epoch_is_shown_before_its_writer_goes_on(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        here.run("INSERT INTO sales VALUES (1, 'tea', 3, NULL)")
        items, ids = by_item(here), by_id(here)
        here.share(items, ("TEA",), ("coffee",))
        here.share(ids, (1,))
        assert here.read(items, ("Téa",), ("coffee",)) == [[("tea", 1)], []]
        for number in range(2, 300):
            here.run(f"INSERT INTO sales VALUES ({number}, '{'tea' if number % 2 else 'coffee'}', 1, NULL)")
            here.run(f"UPDATE sales SET price = {number} WHERE id = 1")
            assert here.read(items, ("tea",), ("coffee",)) == [[("tea", (number + 1) // 2)], [("coffee", number // 2)]]
            assert here.read(ids, (1,)) == [[(1, "tea", number, None)]]
        here.run("DELETE FROM sales")
        assert here.read(items, ("tea",)) == [[]]


def test_evicted_keys_go_and_come_back(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        values = ", ".join(f"({number}, 'item {number}', 1, NULL)" for number in range(200))
        here.run(f"INSERT INTO sales VALUES {values}")
        view = by_id(here)
        here.share(view, *((number,) for number in range(200)))
        assert here.read(view, (7,)) is not None
        here.host._memory_bytes = 0
        here.host.enforce_limit()
        assert here.read(view, (7,)) is None
        here.run("UPDATE sales SET price = 2")
        assert here.ask(view, (7,)) == [[(7, "item 7", 2, None)]]
        assert here.read(view, (7,)) == [[(7, "item 7", 2, None)]]


def test_keys_that_are_read_here_are_evicted_last(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        values = ", ".join(f"({number}, 'item {number}', 1, NULL)" for number in range(1000))
        here.run(f"INSERT INTO sales VALUES {values}")
        view = by_id(here)
        here.share(view, *((number,) for number in range(1000)))
        engine = here.host.engine
        engine.enforce(engine.measure().total_bytes - 1)  # the hand has passed all of them once
        here.host._publisher.forget_reads()
        hot = set(range(100, 200))
        for number in hot:
            here.read(view, (number,))
        here.host._memory_bytes = here.host._publisher.memory_bytes + engine.measure().total_bytes // 2
        here.host.enforce_limit()
        kept = [number for number in range(1000) if here.read(view, (number,)) is not None]
        assert hot <= set(kept)
        assert len(kept) < 900


def test_a_full_view_knows_which_keys_have_no_rows(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        here.run("INSERT INTO sales VALUES (1, 'tea', 3, NULL), (2, 'tea', 3, NULL), (3, 'milk', 3, NULL)")
        view = by_item(here, key=(1,))
        here.share(view, (2,))
        assert here.read(view, (2,), (1,), (99,)) == [[("tea", 2)], [("milk", 1)], []]
        here.run("DELETE FROM sales WHERE id = 1")
        here.run("INSERT INTO sales VALUES (4, 'milk', 3, NULL), (5, 'milk', 3, NULL)")
        assert here.read(view, (2,), (1,), (3,)) == [[], [("tea", 1)], [("milk", 3)]]


def test_large_results_are_read_from_the_worker_after_each_change(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        large = "x" * (LARGE_BYTES + 1)
        here.run(f"INSERT INTO sales VALUES (1, 'tea', 3, '{large}')")
        view = by_id(here)
        here.share(view, (1,))
        assert here.read(view, (1,)) == [[(1, "tea", 3, large)]]
        here.run("UPDATE sales SET price = 4")
        assert here.read(view, (1,)) is None
        assert here.ask(view, (1,)) == here.read(view, (1,)) == [[(1, "tea", 4, large)]]


def test_a_view_ends_with_its_table(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        here.run("INSERT INTO sales VALUES (1, 'tea', 3, NULL)")
        view = by_id(here)
        here.share(view, (1,))
        here.run("ALTER TABLE sales ADD COLUMN more INT")
        here.host.tables_changed(here.store.table_versions)
        assert here.read(view, (1,)) is None


def test_a_worker_without_room_shares_nothing_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as here:
        here.run("INSERT INTO sales VALUES (1, 'tea', 3, NULL)")
        view = by_id(here)
        here.share(view, (1,))
        monkeypatch.setattr(Segment, "reserve", no_space)
        wide = ", ".join(f"({number}, '', 0, '{'x' * 500}')" for number in range(2, 200))
        here.run(f"INSERT INTO sales VALUES {wide}")
        keys = [(number,) for number in range(200)]
        assert len(here.ask(view, *keys)) == 200
        assert here.read(view, (1,)) is None
        assert here.ask(view, (1,)) == [[(1, "tea", 3, None)]]


def no_space(segment: Segment, start: int, stop: int) -> None:
    raise OSError(errno.ENOSPC, "no space")
