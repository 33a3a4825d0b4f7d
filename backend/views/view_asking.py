"""Keys of views, asked of the workers they live on, which fill what is missing.

What is returned is one epoch's: where shards answer for different ones, all are asked again, or read. No answer of this
process is from before an earlier one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from backend.network.messages import Found, Lookup, Message, UnknownView
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition, is_packed, together, unpacked
from backend.views.view_range import Range
from dataflow.errors import Retryable

ATTEMPTS = 10
PATIENCE_S = 0.4
"""How long several shards may take to answer, before the query is evaluated instead: they compute what is missing in one go."""
REST_S = 1.0
"""How long no shard is asked after that."""
PLAN_PATIENCE_S = 2.0
"""How long a query waits for the transition that makes its view; longer than that it is evaluated, and so are others for `REST_S`."""

log = logging.getLogger(__name__)

_encode = msgspec.msgpack.Encoder().encode


class ViewAsking:
    def __init__(
        self,
        shard_count: int,
        ask: Callable[[int, Message], Awaitable[Any]],
        shared: SharedViews,
        maintain: Callable[[ViewDefinition], Awaitable[bool]],
        known: set[bytes],
    ) -> None:
        """`shared` learns where the answers are found from then on, `known` which views there are. `maintain` has a view kept, if that is possible."""
        self._shard_count = shard_count
        self._ask = ask
        self._shared = shared
        self._maintain = maintain
        self._known = known
        self._wanted: dict[bytes, asyncio.Task[bool]] = {}
        self._unplanned_until = 0.0
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
                found = await (self._of_one(definition, keys, part) if self._shard_count == 1 else self._of_several(definition, keys, part))
        except Retryable:
            if self._shard_count == 1:
                raise
            return None  # a shard is away; the query can be evaluated
        except TimeoutError:
            # What is missing takes all shards to compute. To evaluate the query may take fewer.
            self._resting_until = loop.time() + REST_S
            return None
        if found is not None:
            self._known.add(definition.name)
        return found

    async def _of_one(self, definition: ViewDefinition, keys: bytes, part: Range | None) -> list[bytes] | None:
        wanted = Lookup(definition.name, keys, None if part is None else part.encoded())
        answer = await self._ask(0, wanted)
        if isinstance(answer, UnknownView) and await self._added(definition):
            answer = await self._ask(0, wanted)
        if not isinstance(answer, Found):
            return None
        self._shared.learn(definition, answer)
        return answer.rows

    async def _of_several(self, definition: ViewDefinition, given: bytes, part: Range | None) -> list[bytes] | None:
        keys = _encode(list(zip(unpacked(given).tolist()))) if is_packed(given) else given
        wanted = definition.decode_keys(keys)
        places: dict[int, list[int]] = {}
        for place, shard in enumerate(definition.shards(wanted, self._shard_count)):
            places.setdefault(shard, []).append(place)
        encoded = {shard: _encode([wanted[place] for place in own]) for shard, own in places.items()}
        range_ = None if part is None else part.encoded()
        rows: list[bytes] | None = None
        for attempt in range(ATTEMPTS):
            least_epoch = self._shared.seen.epoch
            requests = [self._ask(shard, Lookup(definition.name, own, range_, least_epoch)) for shard, own in encoded.items()]
            answers = dict(zip(encoded, await asyncio.gather(*requests)))
            if not all(isinstance(answer, Found) for answer in answers.values()):
                if attempt or not await self._added(definition):
                    return None
                continue
            for shard, answer in answers.items():
                self._shared.learn(definition, answer, shard)
            if len({answer.epoch for answer in answers.values()}) == 1:
                rows = [b""] * len(wanted)
                for shard, own in places.items():
                    for place, each in zip(own, answers[shard].rows, strict=True):
                        rows[place] = each
            else:  # what was missing is filled by now, so that all can answer at once, if they are asked at all
                rows = self._shared.lookup(definition, keys, part)
            if rows is not None:
                return [together(len(rows), rows)] if is_packed(given) else rows
        return None

    async def _added(self, definition: ViewDefinition) -> bool:
        """Have the view kept, which is new, or has retired; False if it is not there yet.

        All who want it wait for one transition. A worker alone that fills it in the background answers the lookup after that.
        """
        loop, name = asyncio.get_running_loop(), definition.name
        self._known.discard(name)
        if loop.time() < self._unplanned_until:
            return False
        task = self._wanted.get(name)
        if task is None:
            task = self._wanted[name] = asyncio.ensure_future(self._maintain(definition))
            task.add_done_callback(lambda done: self._planned(name, done))
        try:
            async with asyncio.timeout(PLAN_PATIENCE_S):
                is_there = await asyncio.shield(task)
        except TimeoutError:
            self._unplanned_until = loop.time() + REST_S
            return False
        return is_there or self._shard_count == 1

    def _planned(self, name: bytes, task: asyncio.Task[bool]) -> None:
        del self._wanted[name]
        if not task.cancelled() and task.exception() is not None:
            log.warning("a view could not be planned: %r", task.exception())
