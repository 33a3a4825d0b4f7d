"""The views of a worker against their memory: cold keys go, and what cannot go is reported."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import SegmentNames
from backend.view_host import ViewHost
from controller.catalog import encode_node, encode_table
from dataflow.epoch_messages import PersistEpoch
from dataflow.node import Base
from dataflow.types import BIGINT
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
    assert host.add(b"by id", NODE, (0,), [encode_table(TABLE)], VERSIONS)
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
    assert host.add(b"by id", NODE, (0,), [encode_table(TABLE)], VERSIONS)
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


def test_memory_that_full_views_alone_take_too_much_of_is_reported(host: ViewHost) -> None:
    assert host.add(b"all", NODE, (), [encode_table(TABLE)], VERSIONS)
    host.enforce_limit()
    assert host.memory.only_full_left and host.memory.full_bytes > 60_000
    [rows] = host.lookup(b"all", msgspec.msgpack.encode([()])) or []
    assert len(msgspec.msgpack.decode(rows)) == 1000


def test_a_view_over_another_version_of_a_table_is_refused(host: ViewHost) -> None:
    assert not host.add(b"old", NODE, (1,), [encode_table(TABLE)], {TABLE.id: TABLE.version + 1})
    assert host.lookup(b"old", msgspec.msgpack.encode([(1,)])) is None


def test_a_view_that_nobody_uses_goes_unless_it_reads_a_named_one(tmp_path: Path) -> None:
    names = SegmentNames(str(tmp_path), 0)
    host = ViewHost(ShardStore(tmp_path, "os"), 1 << 30, names)
    wanted = msgspec.msgpack.encode([(n,) for n in range(8)])
    host.add(b"idle", NODE, (0,), [encode_table(TABLE)], VERSIONS)
    host.add(b"named", NODE, (0, 1), [encode_table(TABLE)], VERSIONS, names=("d.v",), since=5.0)
    host.add(b"asked", NODE, (1,), [encode_table(TABLE)], VERSIONS)
    host.enforce_limit()
    assert host.lookup(b"asked", wanted) is not None
    host.idle_s = 0.0
    host.enforce_limit()
    assert set(host.views) == {b"named", b"asked"}
    assert (host.views[b"named"].names, host.views[b"named"].since) == (("d.v",), 5.0)
    found = host.lookup_shared(b"asked", wanted)
    host.enforce_limit()
    assert found is not None
    reader = SharedViewReader.open(found[1])
    assert reader is not None and reader.get(3) is not None
    host.enforce_limit()
    assert b"asked" in host.views, "it was read in shared memory"
    host._publisher.forget_reads()
    host.enforce_limit()
    assert set(host.views) == {b"named"}
    assert reader.get(3) is None and reader.is_gone
    host.close()
