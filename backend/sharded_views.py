"""Lookups in views whose keys live on several shards, from the side that asks.

Each key is read from the shared memory of the shard it lives on, if that is on this machine
and has it, or else asked of that shard. What is returned is one epoch's: where shards
answer for different ones, those that are behind are asked again. No answer of this process
is from before an earlier one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from backend.messages import AddView, Message, UnknownView
from backend.sharded_view_messages import FoundAt, LookupAt
from backend.shared_memory.epoch_words import BEGUN, SHOWN, open_epoch_words
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import is_possible
from backend.shared_memory.shared_key import KeyNaming, SharedKey
from backend.view_definition import ViewDefinition
from backend.view_range import EncodedRange, Range
from dataflow.errors import Retryable
from dataflow.sharding import shard_of
from dataflow.source import key_of_values
from dataflow.types import Row

ATTEMPTS = 10
PATIENCE_S = 0.4
"""How long shards may take to answer, before the query is evaluated instead."""
REST_S = 1.0
"""How long no shard is asked after that."""
UNREACHABLE_MAX = 10_000

_encode = msgspec.msgpack.Encoder().encode


class ShardedReader:
    """One view in the shared memory of several shards, read as if it were one (`SharedViewReader`)."""

    is_gone = False

    def __init__(self, views: ShardedViews, naming: KeyNaming) -> None:
        self._views = views
        self._count = views.shard_count
        self._index_key = naming.index_key
        self.parts: dict[int, tuple[SharedViewReader, memoryview]] = {}

    def part(self, shard: int) -> tuple[SharedViewReader, memoryview] | None:
        found = self.parts.get(shard)
        if found is not None and found[0].is_gone:
            self.parts.pop(shard, None)
            return None
        return found

    def sweep(self) -> None:
        """Keep nothing mapped that is gone."""
        for shard, (reader, _) in list(self.parts.items()):
            if not reader.follow():
                self.parts.pop(shard, None)

    def get_number(self, key: int) -> bytes | None:
        part = self.part(shard_of(key, self._count))
        views = self._views
        if part is None or part[1][SHOWN] < views.epoch:
            return None
        found = part[0].get_number(key)
        views.epoch = max(views.epoch, part[1][BEGUN])
        return found

    def get_many(self, keys: Sequence[SharedKey]) -> list[bytes | None] | None:
        """As of one epoch; None where shards have to be asked."""
        places: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(shard_of(self._index_key(key), self._count), []).append(place)
        parts = {shard: part for shard in places if (part := self.part(shard)) is not None}
        if len(parts) < len(places):
            return None
        shown = {words[SHOWN] for _, words in parts.values()}
        if not shown or min(shown) < self._views.epoch or len(shown) > 1:
            return None
        result: list[bytes | None] = [None] * len(keys)
        for shard, own in places.items():
            found = parts[shard][0].get_many([keys[place] for place in own])
            if found is None:
                return None
            for place, rows in zip(own, found, strict=True):
                result[place] = rows
        begun = {words[BEGUN] for _, words in parts.values()}
        if len(parts) > 1 and begun != shown:
            return None
        self._views.epoch = max(begun)
        return result


class ShardedViews:
    def __init__(self, shard_count: int, ask: Callable[[int, Message], Awaitable[Any]]) -> None:
        self.shard_count = shard_count
        self.epoch = 0
        """The latest epoch that somebody here has seen."""
        self._ask = ask
        self._readers: dict[bytes, ShardedReader] = {}
        self._words: dict[str, memoryview] = {}
        self._elsewhere: set[str] = set()
        self._resting_until = 0.0

    def reader(self, view: bytes) -> ShardedReader | None:
        return self._readers.get(view)

    def forget(self, shard: int | None = None) -> None:
        """The shard is lost, or has moved (None: any of them): what it shows may be out of date."""
        for reader in self._readers.values():
            for number in [shard] if shard is not None else list(reader.parts):
                part = reader.parts.pop(number, None)
                if part is not None:
                    part[0].leave()
        self._elsewhere.clear()
        if shard is None:
            self._words.clear()

    async def lookup(
        self, definition: ViewDefinition, keys: bytes, part: Range | None = None
    ) -> list[bytes] | None:
        """The rows of each key, encoded, as of one epoch; None if no view can serve them."""
        wanted = definition.decode_keys(keys)
        reader = self._readers.get(definition.name) if part is None else None
        names = None if reader is None else definition.naming.names(wanted)
        found = None if reader is None or names is None else reader.get_many(names)
        if found is not None and None not in found:
            return found  # type: ignore[return-value]
        loop = asyncio.get_running_loop()
        if loop.time() < self._resting_until:
            return None
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._asked(definition, wanted, None if part is None else part.encoded())
        except Retryable:  # a shard is away
            return None
        except TimeoutError:
            # What is missing takes all shards to compute. To evaluate the query may take fewer.
            self._resting_until = loop.time() + REST_S
            return None

    async def _asked(
        self, definition: ViewDefinition, wanted: Sequence[Row], part: EncodedRange | None
    ) -> list[bytes] | None:
        places: dict[int, list[int]] = {}
        for place, shard in enumerate(self._shards(definition, wanted)):
            places.setdefault(shard, []).append(place)
        encoded = {shard: _encode([wanted[place] for place in own]) for shard, own in places.items()}
        answers: dict[int, FoundAt] = {}
        missing, least_epoch, added = set(encoded), self.epoch, False
        for _ in range(ATTEMPTS):
            asked = sorted(missing)
            found = await asyncio.gather(
                *[self._ask(shard, LookupAt(definition.name, encoded[shard], least_epoch, part)) for shard in asked]
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
                self.epoch = max(self.epoch, least_epoch)
                rows: list[bytes] = [b""] * len(wanted)
                for shard, own in places.items():
                    self._learn(definition, shard, answers[shard])
                    for place, each in zip(own, answers[shard].rows, strict=True):
                        rows[place] = each
                return rows
        return None

    async def _add(self, definition: ViewDefinition) -> bool:
        message = AddView(
            definition.name, definition.node, definition.key, definition.tables, definition.order, definition.names, time.time(),
            definition.named,
        )  # fmt: skip
        return not isinstance(await self._ask(0, message), UnknownView)

    def _shards(self, definition: ViewDefinition, keys: Sequence[Row]) -> list[int]:
        """Where each key lives; agrees with the views' indexes, which are by the sorted columns."""
        columns = sorted(set(definition.key))
        order = [definition.key.index(column) for column in columns]
        types = [definition.types[column] for column in columns]
        count = self.shard_count
        return [shard_of(key_of_values([key[each] for each in order], types), count) for key in keys]

    def _learn(self, definition: ViewDefinition, shard: int, answer: FoundAt) -> None:
        """A shard shows its part of the view in a file of this machine, or of another."""
        if not answer.file or answer.file in self._elsewhere or not is_possible():
            return
        reader = self._readers.get(definition.name)
        if reader is None:
            reader = self._readers[definition.name] = ShardedReader(self, definition.naming)
        if reader.part(shard) is not None:
            return
        words = self._words.get(answer.words) or open_epoch_words(answer.words)
        opened = SharedViewReader.open(answer.file)
        if words is not None and opened is not None:
            for each in self._readers.values():
                each.sweep()
            self._words[answer.words] = words
            reader.parts[shard] = (opened, words)
        elif len(self._elsewhere) < UNREACHABLE_MAX:
            self._elsewhere.add(answer.file)
