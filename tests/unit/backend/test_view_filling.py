"""Views and keys that are filled beside the epochs: they come when they are ready, right, and disturb nobody."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backend.network.program_messages import AddView
from backend.views import view_filling
from backend.views.view_filling import ROWS_AT_ONCE_MAX, Runner, StillFilling, ThreadRunner
from backend.views.view_host import ViewHost
from controller.catalog import encode_node, encode_table
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.expressions.expression import Column, Literal
from dataflow.functions import call
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Join, Node
from dataflow.runtime.loading import FillBudget
from dataflow.schema import Index, KeyPart
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, Row
from persistence.layout import TableWriter
from persistence.shard_store import ShardStore
from tests.tables import table_of

TABLE = table_of((BIGINT, BIGINT, BIGINT_UNSIGNED), indexes=[Index(2, "g", (KeyPart(2),), unique=False)], nullable=False)
WRITER = TableWriter(TABLE)
BASE = Base(TABLE.id, (BIGINT, BIGINT, BIGINT_UNSIGNED), (0,))
COUNTS = Aggregate(BASE, (1,), (AggregateFunction("count_star", (), BIGINT),))
VERSIONS = {TABLE.id: TABLE.version}
GROUPS = 10
ROWS = 10 * ROWS_AT_ONCE_MAX


class Later:
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = deque()

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.waiting.append((work, done))

    def renew(self) -> None: ...

    def close(self) -> None:
        self.waiting.clear()

    def run(self) -> None:
        """Do one piece of work."""
        work, done = self.waiting.popleft()
        try:
            work()
        except Exception as error:
            done(error)
        else:
            done(None)


class Hosted:
    """Views over a table of (id, group, number); the first group has all rows but ten for each other."""

    def __init__(self, folder: Path, memory_bytes: int = 1 << 30, runner: Runner | None = None) -> None:
        self.store = ShardStore(folder, "os")
        self.later = Later()
        self.host = ViewHost(self.store, memory_bytes, None, runner or self.later)
        self.rows: dict[int, Row] = {}
        for start in range(0, ROWS, 5000):
            self.put((n, n % GROUPS if n < GROUPS * 10 else 0, n) for n in range(start, start + 5000))

    def put(self, rows: Any) -> None:
        """An epoch that puts these rows."""
        writes: dict[bytes, bytes | None] = {}
        for row in rows:
            key = WRITER.row_key(row)
            old = self.rows.get(row[0])
            if old is not None:
                writes.update({entry.key: None for entry in WRITER.entries(old, key)})
            writes[key] = WRITER.encode(row)
            writes.update({entry.key: entry.value for entry in WRITER.entries(row, key)})
            self.rows[row[0]] = row
        epoch = PersistEpoch(self.store.epoch + 1, writes, [], {}, None, True)
        changes = self.host.changes(epoch)
        self.store.persist_epoch(epoch)
        self.host.apply(changes)

    def add(self, name: bytes, node: Node, key: tuple[int, ...]) -> bool:
        return self.host.add(AddView(name, encode_node(node), key, [encode_table(TABLE)]), VERSIONS)

    def lookup(self, name: bytes, *keys: tuple[int, ...]) -> list[list[list[int]]] | None:
        found = self.host.lookup(name, msgspec.msgpack.encode(keys))
        return None if found is None else [sorted(msgspec.msgpack.decode(each)) for each in found]

    def counts(self) -> list[list[int]]:
        groups = [row[1] for row in self.rows.values()]
        return [[group, groups.count(group)] for group in sorted(set(groups))]


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    return Hosted(tmp_path)


def test_a_large_view_comes_later_with_what_happened_meanwhile(hosted: Hosted) -> None:
    assert hosted.add(b"rows", BASE, (0,)) and hosted.lookup(b"rows", (1,)) == [[[1, 1, 1]]]
    assert not hosted.add(b"counts", COUNTS, ()) and hosted.lookup(b"counts", ()) is None
    hosted.put([(1, 7, 1), (ROWS, 99, 1)])
    assert not hosted.add(b"counts", COUNTS, ()) and len(hosted.later.waiting) == 1
    [status] = hosted.host.status().fills
    assert (status.view, status.tables, status.keys, status.rows, status.behind) == (b"counts", (TABLE.id,), 0, 0, 3)
    assert hosted.lookup(b"rows", (1,)) == [[[1, 7, 1]]]
    hosted.later.run()
    assert hosted.lookup(b"counts", ()) == [hosted.counts()]
    hosted.put([(2, 7, 1)])
    assert hosted.lookup(b"counts", ()) == [hosted.counts()]
    hosted.host.engine.validate()


def test_a_view_follows_many_changes_round_by_round(hosted: Hosted) -> None:
    hosted.add(b"counts", COUNTS, ())
    for turn in range(3):
        hosted.put([(n, 50 + turn, n) for n in range(turn * 1000, turn * 1000 + 1500)])
        hosted.later.run()
        assert hosted.lookup(b"counts", ()) is None
    hosted.put([(1, 60, 1)])
    hosted.later.run()
    assert hosted.lookup(b"counts", ()) == [hosted.counts()]
    hosted.host.engine.validate()


def test_a_view_that_cannot_be_computed_leaves_the_others_as_they_are(hosted: Hosted) -> None:
    hosted.add(b"rows", BASE, (0,))
    hosted.lookup(b"rows", (1,))
    number = Column(2, BIGINT_UNSIGNED)
    less = Join((BASE,), outputs=(call("-", Literal(ROWS - 2, BIGINT_UNSIGNED), number),))
    assert not hosted.add(b"less", less, ())
    hosted.later.run()
    assert not hosted.add(b"less", less, ()) and not hosted.later.waiting
    assert hosted.host.engine.rows(hosted.host.views[b"rows"].view, 1) == [(1, 1, 1)]
    hosted.put([(1, 3, 4)])
    assert hosted.lookup(b"rows", (1,)) == [[[1, 3, 4]]]


def test_a_view_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, memory_bytes=500_000)
    assert not hosted.add(b"all", BASE, ())
    hosted.later.run()
    assert not hosted.add(b"all", BASE, ()) and not hosted.later.waiting and not hosted.host.views


@pytest.mark.parametrize(("memory_bytes", "fits"), [(1 << 30, True), (4_600_000, True), (3_000_000, False)])
def test_what_a_fill_looks_up_on_its_way_needs_no_room_for_good(tmp_path: Path, memory_bytes: int, fits: bool) -> None:
    """3.8 MB are kept, mostly the rows by their number; 1.8 MB of rows by their id are looked up for the fill alone."""
    hosted = Hosted(tmp_path, memory_bytes)
    pairs = Join((BASE, BASE), ((2, 3),))
    hosted.add(b"sums", Aggregate(pairs, (1,), (AggregateFunction("count_star", (), BIGINT),)), ())
    hosted.later.run()
    assert hosted.lookup(b"sums", ()) == ([hosted.counts()] if fits else None)


def test_a_view_over_a_table_that_changes_is_given_up(hosted: Hosted) -> None:
    hosted.add(b"counts", COUNTS, ())
    hosted.host.tables_changed({TABLE.id: TABLE.version + 1})
    hosted.later.run()
    assert not hosted.host.views and not hosted.host.changes(
        PersistEpoch(1, {WRITER.row_key((1, 1, 1)): None}, [], {}, None, True)
    )
    hosted.put([(1, 3, 4)])
    assert not hosted.add(b"counts", COUNTS, ())
    hosted.later.run()
    assert hosted.lookup(b"counts", ()) == [hosted.counts()]


def test_a_large_key_is_filled_once_for_all_who_ask_for_it(hosted: Hosted) -> None:
    assert hosted.add(b"by group", COUNTS, (0,))
    assert hosted.lookup(b"by group", (1,)) == [[[1, 10]]]
    answers: list[Exception | None] = []
    for keys in [(0,)], [(2,), (0,)]:
        with pytest.raises(StillFilling) as raised:
            hosted.lookup(b"by group", *keys)
        raised.value.fill.then(answers.append)
    assert len(hosted.later.waiting) == 1
    hosted.put([(3, 0, 1), (0, 1, 1)])
    assert hosted.lookup(b"by group", (1,)) == [[[1, 11]]] and not answers
    hosted.later.run()
    assert answers == [None, None]
    assert hosted.lookup(b"by group", (0,), (2,), (3,)) == [[each] for each in hosted.counts() if each[0] in (0, 2, 3)]
    hosted.put([(4, 0, 1)])
    assert hosted.lookup(b"by group", (0,)) == [hosted.counts()[:1]]
    hosted.host.engine.validate()


def test_a_key_that_takes_too_much_memory_is_not_tried_again(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, memory_bytes=500_000)
    assert hosted.add(b"by group", BASE, (1,))
    with pytest.raises(StillFilling):
        hosted.lookup(b"by group", (0,))
    hosted.later.run()
    assert hosted.lookup(b"by group", (0,)) is None and hosted.lookup(b"by group", (1,)) is not None
    assert not hosted.later.waiting


def test_a_thread_fills_while_epochs_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        hosted = Hosted(tmp_path, runner=ThreadRunner())
        by_number = Aggregate(BASE, (2,), (AggregateFunction("max", (Column(1, BIGINT),), BIGINT),))
        assert hosted.add(b"by group", COUNTS, (0,))
        with pytest.raises(StillFilling) as raised:
            hosted.lookup(b"by group", (0,))
        filled = asyncio.get_running_loop().create_future()
        raised.value.fill.then(filled.set_result)
        hosted.add(b"counts", COUNTS, ())
        hosted.add(b"by number", by_number, ())
        turn = 0
        while len(hosted.host.views) < 3 or not filled.done():
            hosted.put((n * 37 % ROWS, turn % 50, n) for n in range(turn, turn + 200))
            turn += 200
            await asyncio.sleep(0)
        assert await filled is None
        assert hosted.lookup(b"by group", (0,)) == [hosted.counts()[:1]]
        assert hosted.lookup(b"counts", ()) == [hosted.counts()]
        hosted.host.engine.validate()
        hosted.host.close()

    asyncio.run(run())


def test_a_fill_that_does_not_get_on_is_given_up_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_filling, "STUCK_S", 0.1)
    ended, check = threading.Event(), FillBudget.check

    def hang(budget: FillBudget) -> None:
        checked.append(budget)
        if budget is checked[0]:
            ended.wait()
        check(budget)

    monkeypatch.setattr(FillBudget, "check", hang)
    checked: list[FillBudget] = []

    async def run() -> None:
        hosted = Hosted(tmp_path, runner=ThreadRunner())
        hosted.add(b"hangs", COUNTS, ())
        hosted.add(b"counts", COUNTS, ())
        while b"counts" not in hosted.host.views:
            await asyncio.sleep(0.01)
        assert hosted.lookup(b"counts", ()) == [hosted.counts()]
        [aside] = [each for each in hosted.host.status().views if each.is_set_aside]
        assert aside.name == b"hangs" and "nothing was read" in aside.reason
        ended.set()
        hosted.host.close()

    asyncio.run(run())


def test_closing_ends_a_fill_that_is_under_way(tmp_path: Path) -> None:
    async def run() -> None:
        hosted = Hosted(tmp_path, runner=ThreadRunner())
        hosted.add(b"counts", COUNTS, ())
        hosted.host.close()
        hosted.store.close()

    asyncio.run(run())
