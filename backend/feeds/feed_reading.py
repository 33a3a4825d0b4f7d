"""A change feed over all shards: kept, listed, and read in the order of epochs.

A position is an epoch: who has read up to it goes on with what came after it, however often. Changes of one epoch come together,
and only those of epochs that all shards have recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec

from backend.clustering.cluster import Cluster
from backend.feeds.feed_source import FeedSource
from backend.network.feed_messages import (
    AskFeeds,
    CountFeed,
    FeedGone,
    FeedState,
    ForgetFeed,
    KeepFeed,
    KeptFeeds,
    ReadFeed,
)
from dataflow.errors import Condition, InvalidStatement, Retryable, Unsupported
from dataflow.values.types import Row
from persistence.change_feeds import FeedRecord

SECONDS = 86_400
BYTES_MAX = 64 << 20
"""How long, and how many bytes on each shard, changes are kept if nobody says."""
SECONDS_MAX = 366 * 86_400
WAIT_STEP_S = 0.05
FOLLOW_S = 20.0
"""So long a view may take until it is maintained."""

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Bounds:
    """Changes of the epochs after `floor` can be read, up to `latest`."""

    floor: int
    latest: int


@dataclass(frozen=True, slots=True)
class EpochChanges:
    """What one epoch has changed, or a part of it if there is much: (row, weight). `is_last` with the last part."""

    epoch: int
    changes: list[tuple[Row, int]]
    is_last: bool


async def keep_changes(cluster: Cluster, source: FeedSource, seconds: int = SECONDS, bytes_max: int = BYTES_MAX) -> Bounds:
    """Have the changes of a table or view kept from now on, on each shard so long and so many bytes of them."""
    if not 0 < seconds <= SECONDS_MAX or bytes_max <= 0:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "millrace.keep_changes")
    view = b"" if source.view is None else source.view.name
    await _maintained(cluster, source)
    await _ask_all(cluster, KeepFeed(source.feed, view, seconds, bytes_max, source.catalog_version))
    return await bounds(cluster, source)


async def forget_changes(cluster: Cluster, feed: int) -> None:
    await _ask_all(cluster, ForgetFeed(feed))


async def kept_feeds(cluster: Cluster) -> list[tuple[int, FeedState]]:
    """(shard, feed)"""
    answers: list[KeptFeeds] = await _ask_all(cluster, AskFeeds())
    return [(shard, each) for shard, found in enumerate(answers) for each in found.feeds]


async def bounds(cluster: Cluster, source: FeedSource) -> Bounds:
    """What can be read now. A view that has gone since, as after a restart, is maintained again first."""
    deadline = asyncio.get_running_loop().time() + FOLLOW_S
    while True:
        states = [each for _, each in await kept_feeds(cluster) if each.feed == source.feed]
        if len(states) < cluster.shard_count:
            raise InvalidStatement(Condition.CHANGES_NOT_KEPT, source.name)
        floor, latest = max(each.floor for each in states), min(each.latest for each in states)
        if source.view is None:
            return Bounds(floor, max(floor, await cluster.read_epoch() or latest))
        if all(each.is_followed for each in states) and latest >= 0 and min(each.floor for each in states) >= 0:
            return Bounds(floor, max(floor, latest))
        if asyncio.get_running_loop().time() > deadline:
            raise Retryable(Condition.UNKNOWN_ERROR, f"the view {source.name} is not maintained yet")
        with contextlib.suppress(Unsupported):  # it may be that a worker is being restarted
            await _maintained(cluster, source)
            if any(each.view != source.view.name for each in states):  # its tables have changed since
                limits = states[0].seconds, states[0].bytes_max
                await _ask_all(cluster, KeepFeed(source.feed, source.view.name, *limits, source.catalog_version))
        await asyncio.sleep(WAIT_STEP_S)


async def next_position(cluster: Cluster, source: FeedSource, since: int, rows_max: int) -> Bounds:
    """`latest` is where who has read up to `since` stops to have about so many changes: whole epochs, and at least one."""
    found = await bounds(cluster, source)
    counts: Counter[int] = Counter()
    for answer in await _ask_all(cluster, CountFeed(source.feed, since, found.latest, rows_max)):
        _check(source, since, answer)
        for epoch, count in answer.counts:
            counts[epoch] += count
    total = 0
    for epoch in sorted(counts):
        total += counts[epoch]
        if total >= rows_max:
            return Bounds(found.floor, epoch)
    return Bounds(found.floor, max(found.latest, since))


async def changes(cluster: Cluster, source: FeedSource, since: int, until: int | None = None) -> AsyncGenerator[EpochChanges, None]:
    """The changes after epoch `since`, up to `until` or now."""
    latest = (await bounds(cluster, source)).latest
    end = latest if until is None else min(until, latest)
    shards = [_records(cluster, shard, source, since, end) for shard in range(cluster.shard_count)]
    try:
        waiting: FeedRecord | None = None
        async for record in _merged(shards):
            if waiting is not None:
                yield _changes(source, waiting, record.epoch != waiting.epoch)
            waiting = record
        if waiting is not None:
            yield _changes(source, waiting, True)
    finally:
        for each in shards:
            await each.aclose()


async def awaited_changes(cluster: Cluster, source: FeedSource, since: int, wait_s: float) -> AsyncGenerator[EpochChanges, None]:
    """As `changes`; if there are none, the first ones that come within so many seconds."""
    deadline = asyncio.get_running_loop().time() + wait_s
    is_any = False
    while True:
        async with contextlib.aclosing(changes(cluster, source, since)) as found:
            async for each in found:
                yield each
                is_any = True
        if is_any or asyncio.get_running_loop().time() >= deadline:
            return
        await asyncio.sleep(WAIT_STEP_S)


async def _records(cluster: Cluster, shard: int, source: FeedSource, since: int, until: int) -> AsyncGenerator[FeedRecord, None]:
    after = -1
    while True:
        answer = await cluster.ask(shard, ReadFeed(source.feed, since, until, after))
        _check(source, since, answer)
        for record in answer.records:
            yield record
        if not answer.more:
            return
        since, after = answer.records[-1].epoch, answer.records[-1].number


async def _merged(shards: list[AsyncGenerator[FeedRecord, None]]) -> AsyncIterator[FeedRecord]:
    """The records of all shards in the order of their epochs."""
    heads: list[tuple[int, int, FeedRecord]] = []
    for shard, each in enumerate(shards):
        if (record := await anext(each, None)) is not None:
            heads.append((record.epoch, shard, record))
    heapq.heapify(heads)
    while heads:
        _, shard, record = heads[0]
        yield record
        following_one = await anext(shards[shard], None)
        if following_one is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (following_one.epoch, shard, following_one))


def _changes(source: FeedSource, record: FeedRecord, is_last: bool) -> EpochChanges:
    rows = source.rows([row for _, row in record.changes])
    return EpochChanges(record.epoch, [(row, weight) for row, (weight, _) in zip(rows, record.changes)], is_last)


def _check(source: FeedSource, since: int, answer: Any) -> None:
    if isinstance(answer, FeedGone):
        if answer.floor < 0:
            raise InvalidStatement(Condition.CHANGES_NOT_KEPT, source.name)
        raise InvalidStatement(Condition.CHANGES_GONE, source.name, since, answer.floor)


async def _maintained(cluster: Cluster, source: FeedSource) -> None:
    """Have the view maintained that is followed."""
    if source.view is not None and await cluster.lookup_view(source.view, _encode([(0,)])) is None:
        raise Unsupported(f"changes of the view {source.name}: it cannot be maintained")


async def _ask_all(cluster: Cluster, message: Any) -> list[Any]:
    return await asyncio.gather(*(cluster.ask(shard, message) for shard in range(cluster.shard_count)))
