"""What change feeds keep, whatever interrupts their shard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import ANY, Puts, StagePart
from persistence.change_feeds import FeedDefinition
from persistence.layout import row_prefix
from persistence.shard_store import ShardStore

TABLE, VIEW = 7, -3
LARGE = (b"client-1", 4)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ShardStore]:
    store = ShardStore(tmp_path / "shard")
    yield store
    store.abort()


def keep(store: ShardStore, feed: int = TABLE, seconds: int = 3600, bytes_max: int = 1 << 20) -> None:
    is_table = feed >= 0
    store.feeds.keep(FeedDefinition(feed, b"" if is_table else b"view", seconds, bytes_max, 0, store.epoch if is_table else -1))


def key(number: int, table: int = TABLE) -> bytes:
    return row_prefix(table) + bytes([number])


def write(store: ShardStore, number: int, writes: dict[bytes, bytes | None], new: list[Puts] | None = None) -> None:
    store.persist_epoch(PersistEpoch(number, writes, [], {}, None, durable=True, new=new or []))


def changes(store: ShardStore, feed: int = TABLE, since: int = 0) -> list[tuple[int, list[tuple[int, bytes]]]]:
    records, more = store.feeds.read(feed, since, store.epoch)
    assert not more
    return [(each.epoch, each.changes) for each in records]


def test_each_epoch_has_what_it_changed_in_the_table(store: ShardStore) -> None:
    write(store, 1, {key(1): b"before"})
    keep(store)
    write(store, 2, {key(1): b"after", key(2): b"new", key(1, TABLE + 1): b"of another table"})
    write(store, 3, {key(2): None, key(1): b"after"})
    write(store, 4, {}, [Puts([key(5), key(6)], [b"5", b"6"], ANY, b"row ")])
    assert changes(store) == [
        (2, [(-1, b"before"), (1, b"after"), (1, b"new")]),
        (3, [(-1, b"new")]),
        (4, [(1, b"row 5"), (1, b"row 6")]),
    ]
    assert changes(store, since=3) == [(4, [(1, b"row 5"), (1, b"row 6")])]
    assert store.feeds.counts(TABLE, 0, 4, 3) == [(2, 3)]
    assert store.feeds.counts(TABLE, 0, 4, 4) == [(2, 3), (3, 1)]


def test_a_crash_changes_nothing_of_what_was_read(store: ShardStore) -> None:
    keep(store)
    write(store, 1, {key(1): b"one"})
    before = changes(store)
    store.abort()
    again = ShardStore(store.path)
    assert changes(again) == before
    write(again, 2, {key(1): None})
    assert changes(again) == [*before, (2, [(-1, b"one")])]
    again.abort()


def test_a_large_transaction_is_recorded_with_its_epoch_or_not_at_all(store: ShardStore) -> None:
    write(store, 1, {key(1): b"old"})
    keep(store)
    store.persist_part(StagePart(LARGE, 0, [(key(1), 0, b"changed"), (key(2), 0, b"added")], [], {}, {}))
    writes = store.parts_of(LARGE)
    begun = store.begin_epoch(PersistEpoch(2, {}, [LARGE], {}, None, durable=True, large=(LARGE, writes)))
    store.feeds._write_large(2, writes, store.view())  # the process ends before the epoch is stored
    store.abort()
    del begun
    again = ShardStore(store.path)
    assert changes(again) == [] and again.feeds.read(TABLE, 0, 100) == ([], False)
    again.persist_part(StagePart(LARGE, 0, [(key(1), 0, b"changed"), (key(2), 0, b"added")], [], {}, {}))
    again.persist_epoch(PersistEpoch(3, {}, [LARGE], {}, None, durable=True, large=(LARGE, again.parts_of(LARGE))))
    assert changes(again) == [(3, [(-1, b"old"), (1, b"changed"), (1, b"added")])]
    again.abort()


def test_the_oldest_go_when_there_are_too_many_or_their_time_is_over(store: ShardStore) -> None:
    now = 1_000.0
    store.feeds._clock = lambda: now
    keep(store, seconds=60, bytes_max=500)
    for number in range(1, 9):
        write(store, number, {key(number): bytes(90)})
    assert not store.feeds.prune()
    floor = store.feeds.definitions[TABLE].floor
    assert [epoch for epoch, _ in changes(store)] == list(range(floor + 1, 9)) and 2 < floor < 6
    assert store.feeds.bytes_of(TABLE) <= 500
    now = 1_061.0
    write(store, 9, {key(9): b"young"})
    store.feeds.prune()
    assert store.feeds.definitions[TABLE].floor == 8 and [epoch for epoch, _ in changes(store)] == [9]
    store.abort()
    again = ShardStore(store.path)
    assert again.feeds.definitions[TABLE].floor == 8 and again.feeds.bytes_of(TABLE) == len(b"young") + 12 + 5
    again.abort()


def test_a_view_is_recorded_as_the_difference_from_what_it_showed_before(store: ShardStore) -> None:
    keep(store, VIEW)
    write(store, 1, {})
    store.feeds.follow_view(VIEW, 1, {b"a": [b"1"], b"b": [b"2"]}, is_whole=True)
    assert store.feeds.definitions[VIEW].floor == 1 and changes(store, VIEW) == []
    write(store, 3, {})
    store.feeds.follow_view(VIEW, 2, {b"a": [b"1", b"1"]}, is_whole=False)
    store.abort()  # it has missed an epoch
    again = ShardStore(store.path)
    again.feeds.follow_view(VIEW, 3, {b"a": [b"1"], b"c": [b"4"]}, is_whole=True)
    again.feeds.follow_view(VIEW, 3, {b"c": [b"5"]}, is_whole=False)
    again.feeds.follow_view(VIEW, 3, {b"c": [b"5"]}, is_whole=True)
    found = changes(again, VIEW)
    assert found == [
        (2, [(1, b"1")]),
        (3, [(-1, b"1"), (1, b"4"), (-1, b"2")]),
        (3, [(-1, b"4"), (1, b"5")]),
        (3, [(-1, b"1")]),
    ]
    again.abort()


def test_what_a_view_showed_of_an_epoch_that_changed_rows_of_other_shards_alone_outlives_a_crash(store: ShardStore) -> None:
    keep(store, VIEW)
    store.feeds.follow_view(VIEW, 1, {b"k": [b"one"]}, True)
    store.feeds.follow_view(VIEW, 2, {b"k": [b"two"]}, False)
    assert store.epoch < 2
    store.abort()
    again = ShardStore(store.path)
    again.feeds.follow_view(VIEW, 3, {b"k": [b"two"]}, True)
    records, _ = again.feeds.read(VIEW, 1, 3)
    assert [(each.epoch, each.changes) for each in records] == [(2, [(-1, b"one"), (1, b"two")])]
    again.abort()


def test_what_is_forgotten_leaves_nothing(store: ShardStore) -> None:
    keep(store)
    keep(store, VIEW)
    write(store, 1, {key(1): b"one"})
    store.feeds.follow_view(VIEW, 1, {b"a": [b"1"]}, is_whole=True)
    for feed in (TABLE, VIEW):
        store.feeds.forget(feed)
    assert not store.feeds.definitions
    assert store.first_key(b"\0F", b"\0I") is None
    write(store, 2, {key(1): b"two"})
    assert changes(store) == []
