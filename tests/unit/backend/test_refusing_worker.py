"""A damaged shard answers that it is, over real connections; the whole ones take no part in what would hang."""

from __future__ import annotations

import asyncio

import pytest

from backend.clustering.cluster import Cluster
from backend.clustering.store import CommitPart
from backend.worker.refusing_worker import RefusingWorker
from controller.registry import Address
from dataflow.errors import Condition, CorruptState, MillraceError

SECRET = b"s" * 32


def test_a_damaged_shard_is_named_in_its_status_and_to_everyone_who_asks() -> None:
    async def run() -> None:
        worker = RefusingWorker(1, CorruptState("shards/1/000004.log: a wrong checksum"))
        server, port = await worker.serve("127.0.0.1", SECRET)
        cluster = Cluster(2, SECRET)
        cluster.set_addresses({0: Address("127.0.0.1", 1), 1: Address("127.0.0.1", port, damage=worker.damage)})
        status = await cluster.status(1)
        assert status.damage == "shards/1/000004.log: a wrong checksum"
        with pytest.raises(CorruptState, match=r"000004\.log") as refused:
            await cluster.get([(1, b"key")])
        assert refused.value.condition is Condition.DAMAGED and refused.value.condition.code == 1194
        with pytest.raises(MillraceError, match=r"000004\.log"):  # without an epoch of all shards nothing is committed
            await cluster.commit({0: CommitPart([], [])}, {})
        await cluster.stop_workers()
        assert worker.stopped.is_set()
        server.close()
        cluster.close()

    asyncio.run(run())
