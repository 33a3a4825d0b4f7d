"""Views that follow a large transaction in a thread: what is asked meanwhile, and what they show afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from backend.network.program_messages import AddView
from backend.network.view_messages import HostedViews
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import SegmentNames
from backend.views import view_restarting
from backend.views.followed_views import FollowedViews
from backend.views.view_filling import StillFilling
from backend.worker.garbage import Garbage
from controller.catalog import encode_node, encode_table
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import ANY, StagePart
from dataflow.commit.large_writes import LargeWrites
from dataflow.expressions.expression import Column
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Node
from dataflow.values.types import BIGINT
from persistence.layout import TableWriter
from persistence.shard_store import ShardStore
from tests.tables import table_of

TABLE = table_of((BIGINT, BIGINT))
WRITER = TableWriter(TABLE)
VERSIONS = {TABLE.id: TABLE.version}
BASE = Base(TABLE.id, (BIGINT, BIGINT), (0,))
COUNT = Aggregate(BASE, (1,), (AggregateFunction("count_star", (), BIGINT),))
LARGEST = Aggregate(BASE, (), (AggregateFunction("max", (Column(1, BIGINT),), BIGINT),))
VIEWS: dict[bytes, tuple[Node, tuple[int, ...]]] = {b"row": (BASE, (0,)), b"count": (COUNT, (0,)), b"largest": (LARGEST, ())}
ROWS, GROUPS = 3_000, 10


class Later:
    """Does work when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.waiting.append((work, done))

    def run(self) -> None:
        while self.waiting:
            work, done = self.waiting.pop(0)
            work()
            done(None)

    def close(self) -> None:
        pass


class Followed:
    def __init__(self, folder: Path) -> None:
        self.store = ShardStore(folder / "shard", "os")
        self.fill, self.follow = Later(), Later()
        names = SegmentNames(str(folder), 0)
        self.views = FollowedViews(self.store, 1 << 30, names, self.fill, self.follow, Garbage())
        self.rows: dict[int, int] = {}
        self.done: list[int] = []
        self.put({n: n % GROUPS for n in range(ROWS)}, large=False)

    def put(self, rows: dict[int, int | None], large: bool, besides: dict[int, int] | None = None) -> None:
        """An epoch: the rows in a large transaction, others `besides`; or all as small ones."""
        def writes(some: dict[int, int | None]) -> dict[bytes, bytes | None]:
            return {WRITER.row_key((n, v or 0)): None if v is None else WRITER.encode((n, v)) for n, v in some.items()}

        epoch, few, written = self.store.epoch + 1, writes(dict(besides or {})), None
        if large:
            written = LargeWrites()
            pairs = list(writes(rows).items())
            for number, start in enumerate(range(0, len(pairs), 500)):
                part = StagePart((b"c", epoch), number, [(key, ANY, value) for key, value in pairs[start : start + 500]], [])
                self.store.persist_part(part)
                written.add(part.pairs())
        else:
            few |= writes(rows)
        effect = PersistEpoch(epoch, few, [(b"c", epoch)], {}, None, True, large=written and ((b"c", epoch), written))
        changes = self.views.changes(effect)
        self.store.persist_epoch(effect)
        for some in (besides or {}, rows):
            for number, value in some.items():
                if value is None:
                    self.rows.pop(number, None)
                else:
                    self.rows[number] = value
        self.views.apply_changes(changes, lambda: None, self.done.append)

    def add(self, name: bytes) -> bool:
        node, key = VIEWS[name]
        return self.views.add(AddView(name, encode_node(node), key, [encode_table(TABLE)]), VERSIONS)

    def lookup(self, name: bytes, keys: list[tuple[int, ...]]) -> list[list[list[int]]] | None:
        try:
            found = self.views.lookup_shared(name, msgspec.msgpack.encode(keys), None)
        except StillFilling:
            self.fill.run()
            return self.lookup(name, keys)
        return None if found is None else [sorted(msgspec.msgpack.decode(each)) for each in found[0]]

    def check(self) -> None:
        numbers, groups = [(n,) for n in range(ROWS + 100)], [*self.rows.values()]
        assert self.lookup(b"row", numbers) == [[[n, self.rows[n]]] if n in self.rows else [] for (n,) in numbers]
        counted = self.lookup(b"count", [(group,) for group in range(GROUPS + 5)])
        assert counted == [[[group, groups.count(group)]] if group in groups else [] for group in range(GROUPS + 5)]
        assert self.lookup(b"largest", [()]) == [[[max(groups)]]]


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


@pytest.mark.parametrize("rows_max", [view_restarting.FOLLOWED_ROWS_MAX, 100])
def test_views_show_a_large_transaction_whether_they_follow_or_start_anew(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(view_restarting, "FOLLOWED_ROWS_MAX", rows_max)
    chance = random.Random(rows_max)
    for name in VIEWS:
        followed.add(name)
        followed.fill.run()
        assert followed.add(name)
    followed.check()
    for round_number in range(4):
        changed = {n: None if chance.random() < 0.1 else chance.randrange(GROUPS + round_number) for n in range(chance.randrange(500), ROWS)}
        followed.put(changed, large=True, besides={5: 1, ROWS + round_number: 2})
        assert not followed.done[1 + round_number :], "its writers wait for the views"
        assert followed.lookup(b"row", [(1,)]) is None and not followed.add(b"row"), "the thread has the views"
        followed.follow.run()
        assert len(followed.done) == 2 + round_number
        followed.fill.run()
        while followed.store.move():
            pass
        followed.check()
    followed.put({7: 3}, large=False)
    followed.check()


def test_a_view_that_is_being_filled_starts_anew_after_a_large_transaction(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_restarting, "FOLLOWED_ROWS_MAX", 100)
    assert not followed.add(b"largest")
    [(_, filled)] = followed.fill.waiting
    followed.put(dict.fromkeys(range(ROWS), 77), large=True)
    followed.follow.run()
    followed.fill.waiting.pop(0)
    filled(None)
    assert not followed.add(b"largest"), "what was filled is of before"
    followed.fill.run()
    assert followed.add(b"largest") and followed.lookup(b"largest", [()]) == [[[77]]]


def test_of_views_that_start_anew_no_row_is_read(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_restarting, "FOLLOWED_ROWS_MAX", 100)
    assert followed.add(b"row") and followed.lookup(b"row", [(4,)]) == [[[4, 4]]]
    followed.put(dict.fromkeys(range(ROWS), 5), large=True)
    followed.follow.run()
    assert followed.done[-1] == 0, "no row has gone through the views"
    assert followed.add(b"row") and followed.lookup(b"row", [(4,)]) == [[[4, 5]]]


def test_what_was_published_stays_as_it_was_until_all_of_it_changes(followed: Followed) -> None:
    assert followed.add(b"row")
    for _ in range(4):
        found = followed.views.lookup_shared(b"row", msgspec.msgpack.encode([(n,) for n in range(100)]), None)
    assert found is not None
    reader = SharedViewReader.open(found[1])
    assert reader is not None
    followed.put(dict.fromkeys(range(ROWS), 99), large=True)
    [(work, done)] = followed.follow.waiting
    work()
    assert reader.get_many(list(range(100))) == [msgspec.msgpack.encode([(n, n % GROUPS)]) for n in range(100)]
    done(None)
    assert reader.get_many(list(range(100))) == [msgspec.msgpack.encode([(n, 99)]) for n in range(100)]


def test_what_changes_views_waits_for_the_thread(followed: Followed) -> None:
    assert followed.add(b"row") and followed.add(b"count")
    followed.put(dict.fromkeys(range(ROWS), 3), large=True)
    told: list[HostedViews] = []
    followed.views.status(told.append)
    followed.views.enforce_limit()
    followed.views.tables_changed({TABLE.id: TABLE.version + 1}, {})
    assert not told and len(followed.views.views) == 2
    followed.follow.run()
    assert len(told) == 1 and not followed.views.views


def test_views_that_cannot_follow_start_anew(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    assert followed.add(b"row")
    followed.put(dict.fromkeys(range(ROWS), 3), large=True)
    [(_, done)] = followed.follow.waiting
    done(ValueError("out of range"))
    assert len(followed.done) == 2
    assert followed.add(b"row") and followed.lookup(b"row", [(4,)]) == [[[4, 3]]]
    assert "out of range" in caplog.text
    caplog.clear()
