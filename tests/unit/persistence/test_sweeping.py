"""What dropped tables left behind goes, and nothing else."""

from __future__ import annotations

from pathlib import Path

from dataflow.epoch_effects import PersistEpoch
from persistence.layout import index_prefix, row_prefix, unique_prefix
from persistence.shard_store import ShardStore
from persistence.sweeping import stored_tables, sweep


def test_sweep_removes_dropped_tables_and_leaves_known_and_younger_ones(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    writes: dict[bytes, bytes | None] = {}
    for table_id in (1, 2, 3, 300):
        writes |= {row_prefix(table_id) + bytes([n]): b"row" for n in range(5)}
        writes |= {index_prefix(table_id, 7) + b"x": b"", unique_prefix(table_id, 8) + b"y": b""}
    store.persist_epoch(PersistEpoch(1, writes, [], {}, None, True))
    assert stored_tables(store) == {1, 2, 3, 300}
    for _ in sweep(store, {1}, next_table_id=4):
        pass
    assert stored_tables(store) == {1, 300}
    assert store.get(row_prefix(1) + b"\0") == (1, b"row")
    store.close()
