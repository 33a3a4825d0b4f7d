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


class Answering:
    """A connection to a shard that answers at once: each key's rows are the key."""

    lost = False

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.asked: list[list[Any]] = []

    def ask_later(self, message: LookupEach, then: Callable[[Any], None]) -> None:
        keys = VIEW.decode_keys(message.keys)
        assert set(VIEW.shards(keys, SHARDS)) == {self.shard} and message.least_epoch == 7
        self.asked.append(keys)
        then(FoundEach([msgspec.msgpack.encode([key]) for key in keys], "", 9))


def test_each_shard_is_asked_once_a_turn_for_the_keys_that_live_there() -> None:
    peers = [Answering(shard) for shard in range(SHARDS)]
    learnt: list[tuple[int, int]] = []
    found: dict[int, list[bytes] | None] = {}

    async def scenario() -> None:
        misses = Misses(SHARDS, peers.__getitem__, lambda view, answer, shard: learnt.append((shard, answer.epoch)), lambda: 7)  # type: ignore[arg-type]
        for key in range(20):
            assert misses.ask(VIEW, [(key,)], lambda rows, key=key: found.__setitem__(key, rows))  # type: ignore[misc]
        assert not found, "nobody is called back before the turn is over"
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert found == {key: [msgspec.msgpack.encode([(key,)])] for key in range(20)}
    assert sorted(learnt) == [(0, 9), (1, 9), (2, 9)] and all(len(peer.asked) == 1 for peer in peers)


def test_keys_of_several_shards_are_left_to_who_can_have_them_as_of_one_epoch() -> None:
    keys = {shard: [(key,) for key in range(20) if VIEW.shards([(key,)], SHARDS) == [shard]] for shard in range(SHARDS)}

    async def scenario() -> None:
        misses = Misses(SHARDS, lambda shard: None, lambda view, answer, shard: None, lambda: 7)
        called: list[object] = []
        assert not misses.ask(VIEW, [keys[0][0], keys[1][0]], called.append)
        assert misses.ask(VIEW, keys[2][:2], called.append)
        await asyncio.sleep(0)
        assert called == [None], "the shard is away"

    asyncio.run(scenario())
