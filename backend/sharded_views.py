"""Lookups in views whose keys live on several shards, from the side that asks.

Each key is asked of the shard it lives on. What is returned is one epoch's: where shards
answer for different ones, those that are behind are asked again. No answer of this process
is from before an earlier one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from backend.messages import AddView, Message, UnknownView
from backend.sharded_view_messages import FoundAt, LookupAt
from backend.view_definition import ViewDefinition
from dataflow.sharding import shard_of
from dataflow.source import key_of_values
from dataflow.types import Row

ATTEMPTS = 10

_encode = msgspec.msgpack.Encoder().encode


class ShardedViews:
    def __init__(self, shard_count: int, ask: Callable[[int, Message], Awaitable[Any]]) -> None:
        self._shard_count = shard_count
        self._ask = ask
        self._epoch = 0
        """The latest epoch that somebody here has seen."""

    async def lookup(self, definition: ViewDefinition, keys: bytes) -> list[bytes] | None:
        """The rows of each key, encoded, as of one epoch; None if no view can serve them."""
        wanted = definition.decode_keys(keys)
        places: dict[int, list[int]] = {}
        for place, shard in enumerate(self._shards(definition, wanted)):
            places.setdefault(shard, []).append(place)
        encoded = {shard: _encode([wanted[place] for place in own]) for shard, own in places.items()}
        answers: dict[int, FoundAt] = {}
        missing, least_epoch, added = set(encoded), self._epoch, False
        for _ in range(ATTEMPTS):
            asked = sorted(missing)
            found = await asyncio.gather(
                *[self._ask(shard, LookupAt(definition.name, encoded[shard], least_epoch)) for shard in asked]
            )
            if any(isinstance(answer, UnknownView) for answer in found):
                if added or not await self._add(definition):
                    return None
                added, missing = True, set(encoded)
                continue
            answers |= zip(asked, found)
            least_epoch = max(answer.epoch for answer in answers.values())
            missing = {shard for shard, answer in answers.items() if answer.epoch != least_epoch}
            if not missing:
                self._epoch = max(self._epoch, least_epoch)
                rows: list[bytes] = [b""] * len(wanted)
                for shard, own in places.items():
                    for place, each in zip(own, answers[shard].rows, strict=True):
                        rows[place] = each
                return rows
        return None

    async def _add(self, definition: ViewDefinition) -> bool:
        message = AddView(definition.name, definition.node, definition.key, definition.tables, definition.order)
        return not isinstance(await self._ask(0, message), UnknownView)

    def _shards(self, definition: ViewDefinition, keys: Sequence[Row]) -> list[int]:
        """Where each key lives; agrees with the views' indexes, which are by the sorted columns."""
        columns = sorted(set(definition.key))
        order = [definition.key.index(column) for column in columns]
        types = [definition.types[column] for column in columns]
        count = self._shard_count
        return [shard_of(key_of_values([key[each] for each in order], types), count) for key in keys]
