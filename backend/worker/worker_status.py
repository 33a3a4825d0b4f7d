"""A worker's part of `millrace status`."""

from __future__ import annotations

import os

import psutil

from backend.network.messages import ShardStatus
from backend.processes.durations import told
from backend.worker.shard_reads import ShardReads
from dataflow.commit.epochs import ShardEpochs
from persistence.shard_store import ShardStore

_process = psutil.Process()


def shard_status(
    store: ShardStore,
    epochs: ShardEpochs,
    transactions: int,
    reads: ShardReads,
    catalog_version: int,
    views: tuple[int, int, bool],
    longest_hold_ms: float,
) -> ShardStatus:
    """`views` are how many there are, their bytes, and whether only full ones are left."""
    return ShardStatus(
        epochs.shard,
        os.getpid(),
        store.epoch,
        transactions,
        reads.count,
        reads.open_scans,
        store.approximate_bytes(b"\0", b"\xff"),
        _process.memory_info().rss,
        epochs.in_doubt,
        catalog_version,
        *views,
        damage=store.damage,
        read_only=store.read_only,
        longest_hold_ms=round(longest_hold_ms, 1),
        durations=told(),
    )
