"""Keys of views, asked of the workers they live on, which fill what is missing.

What is returned is one epoch's: where shards answer for different ones, those that are behind are asked again. No
answer of this process is from before an earlier one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from backend.messages import Found, Lookup, Message, UnknownView
from backend.recorded_views import RecordedViews
from backend.shared_view import SharedViews
from backend.view_definition import ViewDefinition, is_packed, together, unpacked
from backend.view_range import Range
from dataflow.errors import Retryable

ATTEMPTS = 10
PATIENCE_S = 0.4
"""How long several shards may take to answer, before the query is evaluated instead: they compute what is missing in one go."""
FILLING_S = 10.0
"""How long a new view may take to be filled, before the query is evaluated instead."""
REST_S = 1.0
"""How long no shard is asked after that."""

_encode = msgspec.msgpack.Encoder().encode


class ViewAsking:
    def __init__(
        self,
        shard_count: int,
        ask: Callable[[int, Message], Awaitable[Any]],
        shared: SharedViews,
        recorded: RecordedViews,
    ) -> None:
        """`shared` learns where the answers are found from then on, `recorded` which views there are."""
        self._shard_count = shard_count
        self._ask = ask
        self._shared = shared
        self._recorded = recorded
        # One worker fills in the background what takes long, so it is waited for.
        self._patience_s = None if shard_count == 1 else PATIENCE_S
        self._resting_until = 0.0

    async def lookup(self, definition: ViewDefinition, keys: bytes, part: Range | None = None) -> list[bytes] | None:
        """The rows of each key, encoded, as of one epoch; None if no view can serve them."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._resting_until:
            return None
        try:
            async with asyncio.timeout(self._patience_s):
                found = await self._asked(definition, keys, part)
        except Retryable:
            if self._shard_count == 1:
                raise
            return None  # a shard is away; the query can be evaluated
        except TimeoutError:
            # What is missing takes all shards to compute. To evaluate the query may take fewer.
            self._resting_until = loop.time() + REST_S
            return None
        if found is not None:
            self._recorded.answered(definition)
        return found

    async def _asked(self, definition: ViewDefinition, keys: bytes, part: Range | None) -> list[bytes] | None:
        places, encoded = self._split(definition, keys)
        range_ = None if part is None else part.encoded()
        answers: dict[int, Found] = {}
        missing, least_epoch, added = set(encoded), self._shared.seen.epoch, False
        for _ in range(ATTEMPTS):
            asked = sorted(missing)
            requests = [self._ask(shard, Lookup(definition.name, encoded[shard], range_, least_epoch)) for shard in asked]
            found = await asyncio.gather(*requests) if len(requests) > 1 else [await each for each in requests]
            if not all(isinstance(answer, Found) for answer in found):
                if added or not await self._add(definition):
                    return None
                added, missing = True, set(encoded)
                continue
            answers |= zip(asked, found)
            least_epoch = max(answer.epoch for answer in answers.values())
            missing = {shard for shard, answer in answers.items() if answer.epoch != least_epoch}
            if not missing:
                for shard, answer in answers.items():
                    self._shared.learn(definition, answer, shard)
                return answers[0].rows if places is None else _merged(places, answers, is_packed(keys))
        return None

    async def _add(self, definition: ViewDefinition) -> bool:
        """Have the view kept: all who want it wait for one fill, but not for long."""
        try:
            async with asyncio.timeout(FILLING_S):
                return not isinstance(await self._ask(0, self._recorded.request(definition)), UnknownView)
        except TimeoutError:
            return False

    def _split(self, definition: ViewDefinition, keys: bytes) -> tuple[dict[int, list[int]] | None, dict[int, bytes]]:
        """The places of each shard's keys, and the keys as they travel there; all go to one that is alone."""
        if self._shard_count == 1:
            return None, {0: keys}
        wanted = list(zip(unpacked(keys).tolist())) if is_packed(keys) else definition.decode_keys(keys)
        places: dict[int, list[int]] = {}
        for place, shard in enumerate(definition.shards(wanted, self._shard_count)):
            places.setdefault(shard, []).append(place)
        return places, {shard: _encode([wanted[place] for place in own]) for shard, own in places.items()}


def _merged(places: dict[int, list[int]], answers: dict[int, Found], is_one_list: bool) -> list[bytes]:
    """The rows of all keys in their order; as packed keys get them, in one list of lists."""
    rows: list[bytes] = [b""] * sum(map(len, places.values()))
    for shard, own in places.items():
        for place, each in zip(own, answers[shard].rows, strict=True):
            rows[place] = each
    return [together(len(rows), rows)] if is_one_list else rows
