"""The views of a worker against their memory: cold keys go, and what cannot go is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from backend.network.program_messages import AddView
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import SegmentNames
from backend.views.view_host import ViewHost
from controller.catalog import encode_node, encode_table
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import NEW, Puts
from dataflow.expressions.expression import Column, Literal
from dataflow.functions import call
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Join
from dataflow.values.types import BIGINT
from persistence.layout import TableWriter
from persistence.shard_store import ShardStore
from tests.tables import table_of

TABLE = table_of((BIGINT, BIGINT))
NODE = encode_node(Base(TABLE.id, (BIGINT, BIGINT), (0,)))
VERSIONS = {TABLE.id: TABLE.version}


@pytest.fixture
def host(tmp_path: Path) -> ViewHost:
    """Views over 1,000 rows with room for some of them, not all."""
    store = ShardStore(tmp_path, "os")
    rows = dict(TableWriter(TABLE).stored_rows([(n, n % 10) for n in range(1000)]))
    store.persist_epoch(PersistEpoch(1, dict(rows), [], {}, None, True))
    return ViewHost(store, memory_bytes=60_000)


def test_keys_of_a_partial_view_go_when_memory_is_short_and_come_back(host: ViewHost) -> None:
    assert host.add(AddView(b"by id", NODE, (0,), [encode_table(TABLE)]), VERSIONS)
    wanted = msgspec.msgpack.encode([(n,) for n in range(500)])
    found = host.lookup(b"by id", wanted)
    assert found is not None and [len(msgspec.msgpack.decode(rows)) for rows in found] == [1] * 500
    host.enforce_limit()
    assert host.memory.evicted_keys > 0 and not host.memory.only_full_left
    assert host.lookup(b"by id", wanted) == found


def test_keys_that_are_not_shared_yet_are_filled_without_the_others(tmp_path: Path) -> None:
    store = ShardStore(tmp_path, "os")
    rows = dict(TableWriter(TABLE).stored_rows([(n, n % 10) for n in range(1000)]))
    store.persist_epoch(PersistEpoch(1, dict(rows), [], {}, None, True))
    host = ViewHost(store, 1 << 30, SegmentNames(str(tmp_path), 0))
    assert host.add(AddView(b"by id", NODE, (0,), [encode_table(TABLE)]), VERSIONS)
    hosted = host.views[b"by id"]

    def asked(*keys: int) -> list[object] | None:
        found = host.lookup_shared(b"by id", msgspec.msgpack.encode([(key,) for key in keys]))
        return None if found is None else [msgspec.msgpack.decode(rows) for rows in found[0]]

    asked(*range(500))
    asked(*range(500))
    assert (hosted.misses, hosted.hits) == (500, 500)
    assert asked(*range(300, 600)) == [[[key, key % 10]] for key in range(300, 600)]
    assert (hosted.misses, hosted.hits) == (600, 700)
    wanted = [7, 999, 2_000, *range(200)]
    assert asked(*wanted) == [[[key, key % 10]] if key < 1000 else [] for key in wanted]
    assert (hosted.misses, hosted.hits) == (602, 901)
    host.close()


def test_a_small_table_is_kept_whole_until_it_has_outgrown_that(tmp_path: Path) -> None:
    store = ShardStore(tmp_path, "os")
    writer = TableWriter(TABLE)
    store.persist_epoch(PersistEpoch(1, dict(writer.stored_rows([(n, n % 3) for n in range(10)])), [], {}, None, True))
    host = ViewHost(store, 1 << 30, SegmentNames(str(tmp_path), 0))
    host.small.rows_max = 20

    def write(epoch: int, rows: list[tuple[int, int]]) -> None:
        effect = PersistEpoch(epoch, dict(writer.stored_rows(rows)), [], {}, None, True)
        changes = host.changes(effect)
        store.persist_epoch(effect)
        host.apply(changes)

    for key in (0, 1):
        name = b"by %d" % key
        assert host.add(AddView(name, NODE, (key,), [encode_table(TABLE)]), VERSIONS)
        found = host.lookup_shared(name, msgspec.msgpack.encode([(n,) for n in range(8)]))
        assert found is not None
        reader = SharedViewReader.open(found[1])
        assert reader is not None
        number = 77 + key
        absent = reader.get(number)
        assert absent is not None and msgspec.msgpack.decode(absent) == []
        write(2 + key, [(number, number), (5 + key, 50)])
        shown = reader.get(number)
        assert shown is not None and msgspec.msgpack.decode(shown) == [[number, number]]
    write(4, [(n, n) for n in range(100, 200)])
    retire(host)
    assert not host.views
    assert host.add(AddView(b"by 0", NODE, (0,), [encode_table(TABLE)]), VERSIONS)
    assert host.views[b"by 0"].view.reason == ""
    host.close()


def test_memory_that_full_views_alone_take_too_much_of_is_reported(host: ViewHost) -> None:
    assert host.add(AddView(b"all", NODE, (), [encode_table(TABLE)]), VERSIONS)
    host.enforce_limit()
    assert host.memory.only_full_left and host.memory.full_bytes > 60_000
    [rows] = host.lookup(b"all", msgspec.msgpack.encode([()])) or []
    assert len(msgspec.msgpack.decode(rows)) == 1000


def test_a_view_over_another_version_of_a_table_is_refused(host: ViewHost) -> None:
    assert not host.add(AddView(b"old", NODE, (1,), [encode_table(TABLE)]), {TABLE.id: TABLE.version + 1})
    assert host.lookup(b"old", msgspec.msgpack.encode([(1,)])) is None


def retire(host: ViewHost) -> None:
    """As the leading controller has it done."""
    for name in host.kept_and_idle()[1]:
        host.remove(name)


def test_a_view_that_nobody_uses_goes_unless_it_reads_a_named_one(tmp_path: Path) -> None:
    names = SegmentNames(str(tmp_path), 0)
    host = ViewHost(ShardStore(tmp_path, "os"), 1 << 30, names)
    wanted = msgspec.msgpack.encode([(n,) for n in range(8)])
    host.add(AddView(b"idle", NODE, (0,), [encode_table(TABLE)]), VERSIONS)
    host.add(AddView(b"named", NODE, (0, 1), [encode_table(TABLE)], names=("d.v",), since=5.0), VERSIONS)
    host.add(AddView(b"asked", NODE, (1,), [encode_table(TABLE)]), VERSIONS)
    retire(host)
    assert host.lookup(b"asked", wanted) is not None
    host.idle_s = 0.0
    retire(host)
    assert set(host.views) == {b"named", b"asked"}
    assert (host.views[b"named"].known.names, host.views[b"named"].since) == (("d.v",), 5.0)
    found = host.lookup_shared(b"asked", wanted)
    retire(host)
    assert found is not None
    reader = SharedViewReader.open(found[1])
    assert reader is not None and reader.get(3) is not None
    retire(host)
    assert b"asked" in host.views, "it was read in shared memory"
    host._publisher.forget_reads()
    retire(host)
    assert set(host.views) == {b"named"}
    assert reader.get(3) is None and reader.is_gone
    host.close()


def test_rows_in_bulk_are_counted_whoever_else_looks_at_them(tmp_path: Path) -> None:
    store = ShardStore(tmp_path, "os")
    host = ViewHost(store, 1 << 30)
    base, writer, chance = Base(TABLE.id, (BIGINT, BIGINT), (0,)), TableWriter(TABLE), np.random.default_rng(3)
    counted = encode_node(Aggregate(base, (1,), (AggregateFunction("count_star", (), BIGINT),)))
    summed = encode_node(Aggregate(base, (1,), (AggregateFunction("max", (Column(0, BIGINT),), BIGINT),)))
    names = {b"count": counted, b"max": summed, b"rows": NODE}
    numbers: list[int] = []

    def write(epoch: int) -> None:
        kinds = np.sort(chance.integers(0, 20, 500))
        ids = np.arange(len(numbers), len(numbers) + 500)
        numbered = writer.numbered({0: ids, 1: kinds}, spread=False)
        encoded = writer.codec.encode_columns({0: ids, 1: kinds})
        assert numbered is not None and encoded is not None
        persisted = PersistEpoch(epoch, {}, [], {}, None, True, new=[Puts(numbered[0], encoded[1], NEW, encoded[0])])
        changes = host.changes(persisted)
        store.persist_epoch(persisted)
        gone_through.append(host.apply(changes))
        numbers.extend(kinds.tolist())

    gone_through: list[int] = []
    for round_number, (name, node) in enumerate(names.items()):
        assert host.add(AddView(name, node, (1,) if name == b"rows" else (0,), [encode_table(TABLE)]), VERSIONS)
        for epoch in range(3):
            write(1 + 3 * round_number + epoch)
            keys = msgspec.msgpack.encode([(kind,) for kind in range(20)])
            expected = {
                b"count": [[[kind, numbers.count(kind)]] if kind in numbers else [] for kind in range(20)],
                b"max": [[[kind, max(n for n, each in enumerate(numbers) if each == kind)]] for kind in range(20)],
                b"rows": [sorted([n, kind] for n, each in enumerate(numbers) if each == kind) for kind in range(20)],
            }
            for shown in list(names)[: round_number + 1]:
                found = host.lookup(shown, keys)
                assert found is not None
                assert [sorted(msgspec.msgpack.decode(rows)) for rows in found] == expected[shown]
    assert max(gone_through[:3]) <= 20 and gone_through[3:] == [500] * 6


def test_what_a_removed_view_held_is_let_go_at_once(host: ViewHost) -> None:
    assert host.add(AddView(b"by id", NODE, (0,), [encode_table(TABLE)]), VERSIONS)
    assert host.lookup(b"by id", msgspec.msgpack.encode([(n,) for n in range(100)])) is not None
    held = host.views[b"by id"].view.arrangement.index
    assert len(held) == 100
    host.remove(b"by id")
    assert not held


def test_views_follow_while_an_epoch_is_written_and_wait_for_what_they_read_of_it(tmp_path: Path) -> None:
    store = ShardStore(tmp_path, "os")
    host, writer = ViewHost(store, 1 << 30, SegmentNames(str(tmp_path), 0)), TableWriter(TABLE)
    base = Base(TABLE.id, (BIGINT, BIGINT), (0,))
    pairs = Join((base, base), ((1, 2),), None, (Column(0, BIGINT), Column(3, BIGINT)))  # a row, and the one that it names
    count = Aggregate(base, (1,), (AggregateFunction("count_star", (), BIGINT),))
    assert host.add(AddView(b"pairs", encode_node(pairs), (0,), [encode_table(TABLE)]), VERSIONS)
    assert host.add(AddView(b"count", encode_node(count), (0,), [encode_table(TABLE)]), VERSIONS)
    keys = msgspec.msgpack.encode([(n,) for n in range(40)])
    seen = []
    for epoch in range(1, 9):
        rows = [(n, (n * epoch) % 40) for n in range(5 * epoch)]
        persisted = PersistEpoch(epoch, dict(writer.stored_rows(rows)), [], {}, None, True)
        changes = host.changes(persisted)
        finish, written = store.begin_epoch(persisted), list[int]()

        def wait(finish: Callable[[], None] = finish, written: list[int] = written) -> None:
            if not written:
                written.append(1)
                finish()

        host.apply(changes, wait)
        assert written and store.epoch == epoch
        named, found = dict(rows), {name: host.lookup(name, keys) for name in (b"pairs", b"count")}
        shown = {name: [msgspec.msgpack.decode(each) for each in some or ()] for name, some in found.items()}
        assert shown[b"pairs"] == [[[n, named[named[n]]]] if named.get(n) in named else [] for n in range(40)]
        assert shown[b"count"] == [[[n, [*named.values()].count(n)]] if n in named.values() else [] for n in range(40)]
        seen.append(shown)
    assert seen[0] != seen[-1]
    host.close()


@pytest.mark.parametrize("key", [(), (0,)], ids=["full", "partial"])
def test_a_view_that_cannot_follow_is_set_aside_and_the_others_stay(tmp_path: Path, key: tuple[int, ...]) -> None:
    store = ShardStore(tmp_path, "os")
    host = ViewHost(store, 1 << 30)
    base, writer = Base(TABLE.id, (BIGINT, BIGINT), (0,)), TableWriter(TABLE)
    doubled = Join((base,), outputs=(Column(0, BIGINT), call("*", Column(1, BIGINT), Literal(1 << 61, BIGINT))))
    counted = Aggregate(base, (1,), (AggregateFunction("count_star", (), BIGINT),))

    def write(epoch: int, *rows: tuple[int, int]) -> None:
        persisted = PersistEpoch(epoch, dict(writer.stored_rows(list(rows))), [], {}, None, True)
        changes = host.changes(persisted)
        store.persist_epoch(persisted)
        host.apply(changes)

    def rows(name: bytes, *values: int) -> object:
        found = host.lookup(name, msgspec.msgpack.encode([values]))
        return None if found is None else sorted(msgspec.msgpack.decode(found[0]))

    write(1, (1, 1), (2, 1))
    for name, node, columns in ((b"rows", base, (0,)), (b"all", base, ()), (b"count", counted, (0,)), (b"bad", doubled, key)):
        assert host.add(AddView(name, encode_node(node), columns, [encode_table(TABLE)], names=("d.v",) if name == b"bad" else ()), VERSIONS)
    assert (rows(b"rows", 1), rows(b"count", 1)) == ([[1, 1]], [[1, 2]])
    assert rows(b"bad", *key and (2,)) is not None
    kept = {name: hosted.view.arrangement for name, hosted in host.views.items() if name != b"bad"}
    write(2, (2, 9))
    assert {name: hosted.view.arrangement for name, hosted in host.views.items()} == kept, "nobody else goes"
    assert set(kept[b"rows"].index) == {1} and set(kept[b"count"].index) == {1}, "nor does a key"
    assert (rows(b"rows", 2), rows(b"count", 1), rows(b"all")) == ([[2, 9]], [[1, 1]], [[1, 1], [2, 9]])
    assert not host.add(AddView(b"bad", encode_node(doubled), key, [encode_table(TABLE)]), VERSIONS), "it is not tried for ever"
    [aside] = [each for each in host.status().views if each.is_set_aside]
    assert (aside.name, aside.names, aside.tables) == (b"bad", ("d.v",), (TABLE.id,))
    assert "out of range" in aside.reason
    write(3, (2, 1), (3, 1))
    assert (rows(b"rows", 3), rows(b"count", 1)) == ([[3, 1]], [[1, 3]])
    host.engine.validate()
    host.tables_changed({TABLE.id: TABLE.version + 1})
    assert not host.status().views
    host.close()
