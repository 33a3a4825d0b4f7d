"""Lookups of keys that live on one shard among several: who asks, and what each of them is answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from backend.network.messages import Found, Lookup, UnknownView
from backend.network.miss_messages import FoundEach, LookupEach
from backend.network.transport import Peer
from backend.shared_memory.epoch_words import EpochWords
from backend.shared_memory.publication import Publisher
from backend.views.hosted_view import HostedView
from backend.views.view_range import Range
from dataflow.runtime.engine import View
from dataflow.runtime.shard_messages import UpqueryAnswered
from dataflow.runtime.shard_views import Reading, ShardViews, ViewEffect
from dataflow.state.arrangement import Hit
from dataflow.values.types import Row

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Asking:
    """A lookup under way; `began` is when it came, 0 if all its keys were there."""

    peer: Peer
    request: int
    hosted: HostedView
    wanted: list[Row]
    is_part: bool
    is_each: bool
    began: float


class ShardLookups:
    """`shown` is the epoch that shared memory shows; 0 if nothing is shared."""

    def __init__(
        self, hosted: Mapping[bytes, HostedView], views: ShardViews, publisher: Publisher, words: EpochWords | None, shown: Callable[[], int]
    ) -> None:
        self._hosted, self._views, self._publisher, self._words, self._shown = hosted, views, publisher, words, shown
        self._asking: dict[int, _Asking] = {}
        self._requests = 0

    def begin(self, peer: Peer, request: int, message: Lookup | LookupEach) -> list[ViewEffect]:
        """What is missing is filled in the next epoch, with all that others miss."""
        hosted = self._hosted.get(message.view)
        if hosted is None:
            peer.send(UnknownView(), request)
            return []
        view = hosted.view
        wanted = hosted.keys.decode(message.keys)
        part = message.part if isinstance(message, Lookup) else None
        read = None if part is None else self._reading(view, wanted, hosted.ranges.decode(part))
        keys = tuple([view.index_key(values) for values in wanted])
        self._requests += 1
        kept = view.arrangement.index
        missing = 0 if hosted.is_full else sum([key not in kept for key in keys])
        hosted.hits, hosted.misses = hosted.hits + len(keys) - missing, hosted.misses + missing
        began = time.perf_counter() if missing else 0.0
        self._asking[self._requests] = _Asking(peer, request, hosted, wanted, read is not None, isinstance(message, LookupEach), began)
        return self._views.lookup(self._requests, message.view, keys, message.least_epoch, read)

    def _reading(self, view: View, wanted: list[Row], part: Range) -> Reading:
        def read(place: int) -> tuple[Row, ...]:
            engine = self._views.worker.engine
            found = engine.range(view, wanted[place], part.low, part.high, part.limit, part.descending)
            assert isinstance(found, Hit)
            return found.rows

        return read

    def refuse(self, request: int) -> None:
        asking = self._asking.pop(request)
        asking.peer.send(UnknownView(), asking.request)

    def answer(self, answered: UpqueryAnswered) -> None:
        asking, epoch, rows = self._asking.pop(answered.request), answered.epoch, answered.rows
        if asking.began:
            asking.hosted.filled(time.perf_counter() - asking.began)
        payloads = [_encode(each) for each in rows]
        file = ""
        if self._words is not None and epoch == self._shown():
            view, wanted, engine = asking.hosted.view, asking.wanted, self._views.worker.engine
            if asking.is_part:
                file = self._publisher.ranged(view, wanted)
            else:
                file = self._publisher.looked_up(engine, view, wanted, [Hit(each) for each in rows], payloads)
        words = self._words.file_name if self._words is not None and file else ""
        answer = FoundEach([*payloads], file, epoch, words) if asking.is_each else Found(payloads, file, epoch, words)
        asking.peer.send(answer, asking.request)
