"""Keys that statements have missed: what is asked for in one turn is one message for each view and shard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from backend.clustering.misses import Misses
from backend.network.miss_messages import FoundEach, LookupEach
from backend.views.view_definition import ViewDefinition
from dataflow.plan.node import Base
from dataflow.values.types import BIGINT

VIEW = ViewDefinition(Base(1, (BIGINT, BIGINT), (0,)), (0,), ())
SHARDS = 3


def nowhere(view: ViewDefinition, keys: bytes) -> None:
    """Not in shared memory."""


class Answering:
    """A connection to a shard that answers at once: each key's rows are the key."""

    lost = False

    def __init__(self, shard: int, epoch: int = 9) -> None:
        self.shard = shard
        self.epoch = epoch
        self.asked: list[list[Any]] = []

    def ask_later(self, message: LookupEach, then: Callable[[Any], None]) -> None:
        keys = VIEW.decode_keys(message.keys)
        assert set(VIEW.shards(keys, SHARDS)) == {self.shard} and message.least_epoch == 7
        self.asked.append(keys)
        then(FoundEach([msgspec.msgpack.encode([key]) for key in keys], "", self.epoch))


def test_each_shard_is_asked_once_a_turn_for_the_keys_that_live_there() -> None:
    peers = [Answering(shard) for shard in range(SHARDS)]
    learnt: list[tuple[int, int]] = []
    found: dict[int, list[bytes] | None] = {}

    async def scenario() -> None:
        misses = Misses(SHARDS, peers.__getitem__, lambda view, answer, shard: learnt.append((shard, answer.epoch)), nowhere, lambda: 7)  # type: ignore[arg-type]
        for key in range(20):
            misses.ask(VIEW, [(key,)], lambda rows, key=key: found.__setitem__(key, rows))  # type: ignore[misc]
        assert not found, "nobody is called back before the turn is over"
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert found == {key: [msgspec.msgpack.encode([(key,)])] for key in range(20)}
    assert sorted(learnt) == [(0, 9), (1, 9), (2, 9)] and all(len(peer.asked) == 1 for peer in peers)


def test_keys_of_several_shards_are_answered_as_of_one_epoch() -> None:
    keys = [(key,) for key in range(20)]
    own = [[key for key in keys if VIEW.shards([key], SHARDS) == [shard]] for shard in range(SHARDS)]
    together = [key for pair in zip(*own) for key in pair]
    called: list[object] = []

    async def ask(peers: list[Answering | None], shared: list[bytes] | None) -> None:
        misses = Misses(SHARDS, peers.__getitem__, lambda view, answer, shard: None, lambda view, keys: shared, lambda: 7)  # type: ignore[arg-type]
        misses.ask(VIEW, together, called.append)
        misses.ask(VIEW, own[2][:2], called.append)
        await asyncio.sleep(0)

    rows = [msgspec.msgpack.encode([key]) for key in together]
    only = [msgspec.msgpack.encode([key]) for key in own[2][:2]]
    asyncio.run(ask([Answering(shard) for shard in range(SHARDS)], None))
    assert called == [rows, only]
    called.clear()
    asyncio.run(ask([Answering(0), Answering(1), Answering(2, 10)], [b"of one epoch"]))
    assert called == [[b"of one epoch"], only], "what shards say of different epochs is not put together"
    called.clear()
    asyncio.run(ask([Answering(0), Answering(1), Answering(2, 10)], None))
    assert called == [None, only]
    called.clear()
    asyncio.run(ask([Answering(0), None, Answering(2)], [b"of one epoch"]))
    assert sorted(called, key=str) == sorted([only, None], key=str), "a shard is away"
