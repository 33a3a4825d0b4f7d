"""Which keys a worker's views keep when memory is short, beside an ideal LRU with as many keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from apps.vote.requests import draw_keys
from backend.bench.cache_simulation import lru_hits
from backend.network.messages import Found
from backend.shared_memory.segment import SegmentNames
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition
from backend.views.view_host import ViewHost
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.plan.node import Base
from dataflow.values.types import BIGINT, text
from persistence.layout import TableWriter
from persistence.shard_store import ShardStore
from tests.tables import table_of

KEYS, LOOKUPS, LOOKUPS_BETWEEN_CHECKS, SHARE = 20_000, 60_000, 1_000, 0.2
TITLE = text(100)
TABLE = table_of((BIGINT, TITLE))
BY_ID = ViewDefinition(Base(TABLE.id, (BIGINT, TITLE), (0,)), (0,), (TABLE,))

encode = msgspec.msgpack.Encoder().encode


@contextmanager
def hosted(folder: Path, memory_bytes: int, is_shared: bool = True) -> Iterator[ViewHost]:
    """A view of 20,000 stories."""
    store = ShardStore(folder, "os")
    rows = [(number, f"the title of the story with the number {number}") for number in range(1, KEYS + 1)]
    store.persist_epoch(PersistEpoch(1, dict(TableWriter(TABLE).stored_rows(rows)), [], {}, None, True))
    host = ViewHost(store, memory_bytes, SegmentNames(str(folder), 0) if is_shared else None)
    assert host.add(BY_ID.request(), {TABLE.id: TABLE.version})
    try:
        yield host
    finally:
        host.close()
        store.close()


def held_bytes(host: ViewHost) -> int:
    return host.memory.total_bytes + host._publisher.memory_bytes


def test_hits_are_within_5_points_of_an_lru_that_has_its_share_of_all_keys(tmp_path: Path) -> None:
    with hosted(tmp_path / "all", 1 << 40) as host:
        host.lookup(BY_ID.name, encode([(key,) for key in range(1, KEYS + 1)]))
        host.enforce_limit()
        limit_bytes = int(SHARE * held_bytes(host))
    trace = draw_keys("zipf", KEYS, 1, LOOKUPS).tolist()
    hits: list[bool] = []
    with hosted(tmp_path / "some", limit_bytes) as host:
        shared = SharedViews()
        for number, key in enumerate(trace):
            wanted = encode([(key,)])
            hits.append(shared.lookup(BY_ID, wanted) is not None)
            if not hits[-1]:
                found = host.lookup_shared(BY_ID.name, wanted)
                assert found is not None
                shared.learn(BY_ID, Found(*found))
            if number % LOOKUPS_BETWEEN_CHECKS == 0:
                host.enforce_limit()
        host.enforce_limit()
        assert held_bytes(host) <= limit_bytes * 1.1 and host.views[BY_ID.name].evictions > 0
    ideal = lru_hits(trace, int(SHARE * KEYS))
    ours, theirs = (100 * sum(each[LOOKUPS // 2 :]) / (LOOKUPS // 2) for each in (hits, ideal))
    assert theirs - ours < 5, (ours, theirs)


def test_no_key_goes_for_holes_in_shared_memory(tmp_path: Path) -> None:
    def written(epoch: int, length: int) -> PersistEpoch:
        rows = [(number, "x" * length) for number in range(1, 2001)]
        return PersistEpoch(epoch, dict(TableWriter(TABLE).stored_rows(rows)), [], {}, None, True)

    with hosted(tmp_path, 1 << 40) as host:
        wanted = encode([(key,) for key in range(1, 2001)])
        for _ in range(4):
            host.lookup(BY_ID.name, wanted)
        host.enforce_limit()
        host._memory_bytes = int(1.5 * held_bytes(host))
        for epoch, length in enumerate((80, 160, 320, 40), 2):
            record = written(epoch, length)
            changes = host.changes(record)
            host._store.persist_epoch(record)
            host.apply(changes)
        assert held_bytes(host) > host._memory_bytes
        host.enforce_limit()
        assert host.views[BY_ID.name].evictions == 0 and held_bytes(host) <= host._memory_bytes


def test_a_key_that_is_asked_of_the_worker_again_and_again_stays(tmp_path: Path) -> None:
    """Where nothing is shared, no mark of a reader tells that it is read."""
    with hosted(tmp_path, 300_000, is_shared=False) as host:
        view = host.views[BY_ID.name]
        for number in range(100):
            host.lookup(BY_ID.name, encode([(1,), *[(key,) for key in range(2 + 100 * number, 102 + 100 * number)]]))
            host.enforce_limit()
        assert view.evictions > 5_000 and view.misses == 10_001
