"""The store over all shards, as far as it shows without one."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from backend.clustering.cluster import Cluster
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import find_bound
from backend.execution.transaction import Transaction
from backend.network import connections
from backend.network.messages import ReleaseEpoch
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


class Told:
    """A connection that remembers what was sent over it."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, message: object) -> None:
        self.sent.append(message)


class Refused(Cluster):
    """Shard 1 does not have the epoch any more."""

    async def ask(self, shard: int, message: Any) -> Any:
        if shard == 1:
            raise Retryable(Condition.UNKNOWN_ERROR, "epoch 7 is not kept any more")


def test_an_epoch_that_a_shard_refuses_is_released_where_it_was_held_and_nowhere_else() -> None:
    """Another statement may hold it on the shard that refuses it to this one."""

    async def main() -> list[list[object]]:
        cluster = Refused(3, b"s" * 32)
        peers = [Told() for _ in range(3)]
        cluster._peers.update((shard, cast(Peer, peer)) for shard, peer in enumerate(peers))
        with pytest.raises(Retryable):
            await cluster.hold_on_all(7)
        return [peer.sent for peer in peers]

    assert asyncio.run(main()) == [[ReleaseEpoch(7)], [], [ReleaseEpoch(7)]]
