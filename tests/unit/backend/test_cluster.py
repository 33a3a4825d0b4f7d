"""The store over all shards, as far as it shows without one."""

from __future__ import annotations

import asyncio

import pytest

from backend.clustering.cluster import Cluster
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import find_bound
from backend.execution.transaction import Transaction
from backend.network import connections
from backend.network.transport import Peer
from dataflow.errors import Condition, Retryable
from dataflow.values.types import INT
from tests.tables import table_of


class Counting(Cluster):
    """Counts how often somebody waits for a shard."""

    waits = 0

    async def _peer(self, shard: int, deadline: float) -> Peer:
        self.waits += 1
        return await super()._peer(shard, deadline)


@pytest.mark.parametrize("shard_count", [1, 3])
def test_a_shard_that_does_not_come_back_is_waited_for_once(shard_count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE_S", 0.0)

    async def main() -> int:
        cluster = Counting(shard_count, b"s" * 32)
        table = table_of([INT])
        with pytest.raises(Retryable) as raised:
            async for _ in find_bound(Transaction(cluster), table, Bound(AccessPath(table.primary_key), [()], [])):
                pass
        assert raised.value.condition is Condition.SHARD_UNREACHABLE
        return cluster.waits

    assert asyncio.run(main()) == 1
