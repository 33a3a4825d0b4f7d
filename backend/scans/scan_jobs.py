"""Jobs that read much as of one epoch: they have it kept on all shards, and cut tables into parts to be scanned by column."""

from __future__ import annotations

import asyncio
import itertools
import os

from backend.clustering.cluster import EPOCH_TRIES_MAX, Cluster
from backend.network.messages import ReadableEpoch
from backend.network.scan_messages import ForgetEpoch, KeepEpoch, SplitKeys, SplitRange
from dataflow.errors import Condition, Retryable
from persistence.key_range import KeyRange

Part = tuple[int, bytes, bytes]
"""(shard, start, stop)"""


async def keep_epoch(cluster: Cluster, seconds: float) -> tuple[int, bytes]:
    """The epoch that is kept on all shards from now on, and under which name."""
    name = os.urandom(12)
    for attempt in range(EPOCH_TRIES_MAX):
        try:
            epoch = await cluster.read_epoch()
            return await keep_again(cluster, name, epoch, seconds), name
        except Retryable as error:
            await forget_epoch(cluster, name)
            if error.condition is Condition.SHARD_UNREACHABLE or attempt == EPOCH_TRIES_MAX - 1:
                raise
    raise AssertionError("unreachable")


async def keep_again(cluster: Cluster, name: bytes, epoch: int, seconds: float) -> int:
    """Keep an epoch that is still readable: a shard that was restarted may have it, but has forgotten who wants it."""
    requests = [cluster.ask(shard, KeepEpoch(name, epoch, seconds)) for shard in range(cluster.shard_count)]
    answers: list[ReadableEpoch] = await asyncio.gather(*requests)
    return answers[0].epoch


async def forget_epoch(cluster: Cluster, name: bytes) -> None:
    for peer in cluster.peers():
        peer.send(ForgetEpoch(name))


async def parts_of(cluster: Cluster, keys: KeyRange, count: int) -> list[Part]:
    """A range of keys in about so many parts, at least one for each shard."""
    shards = range(cluster.shard_count)
    each = max(1, -(-count // cluster.shard_count))
    requests = [cluster.ask(shard, SplitRange(*keys, each)) for shard in shards]
    cuts: list[SplitKeys] = await asyncio.gather(*requests)
    found: list[Part] = []
    for shard, answer in zip(shards, cuts):
        bounds = [keys[0], *answer.keys, keys[1]]
        found += [(shard, start, stop) for start, stop in itertools.pairwise(bounds)]
    return found
