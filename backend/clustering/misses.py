"""Keys that statements have missed in shared memory, asked for together.

Everything that is asked for in one turn of the event loop is one message for each view and shard. Who asked is called back with
the rows of its keys; with None if the statement has to be executed as any other: a worker is lost, does
not have the view, or would take long to fill a key. The general path then waits, asks again and reports. So it does if keys live on several
shards, their answers are of different epochs, and shared memory does not have them as of one either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from backend.network.miss_messages import FoundEach, LookupEach
from backend.network.transport import Peer
from backend.views.view_definition import ViewDefinition
from dataflow.values.types import Row

Arrived = Callable[[list[bytes] | None], None]
Learn = Callable[[ViewDefinition, FoundEach, int], None]
Look = Callable[[ViewDefinition, bytes], list[bytes] | None]

_encode = msgspec.msgpack.Encoder().encode


class Misses:
    """Of the views of so many shards, which `find_peer` gives the connections to, as far as they are there."""

    def __init__(
        self, shard_count: int, find_peer: Callable[[int], Peer | None], learn: Learn, look: Look, seen_epoch: Callable[[], int]
    ) -> None:
        """`learn` is told what a shard has answered for a view, `look` finds keys in shared memory; no answer may be from before `seen_epoch`."""
        self._shard_count = shard_count
        self._find_peer = find_peer
        self._learn = learn
        self._look = look
        self._seen_epoch = seen_epoch
        self._asked: dict[tuple[bytes, int], _Asked] = {}

    def ask(self, view: ViewDefinition, keys: Sequence[Row], then: Arrived) -> None:
        """The rows of each of these keys, as of one epoch, in a later turn of the loop."""
        if self._shard_count == 1:
            self._ask(view, 0, keys, then)
            return
        encoded = _encode(keys)
        places: dict[int, list[int]] = {}
        for place, shard in enumerate(view.shards(view.decode_keys(encoded), self._shard_count)):
            places.setdefault(shard, []).append(place)
        if len(places) == 1:
            self._ask(view, next(iter(places)), keys, then)
            return
        gathered = _Gathered(places, len(keys), lambda: self._look(view, encoded), then)
        for shard, own in places.items():
            self._ask(view, shard, [keys[place] for place in own], gathered)

    def _ask(self, view: ViewDefinition, shard: int, keys: Sequence[Row], then: Arrived | _Gathered) -> None:
        asked = self._asked
        if not asked:
            asyncio.get_running_loop().call_soon(self._send)
        found = asked.get((view.name, shard))
        if found is None:
            found = asked[view.name, shard] = _Asked(view, shard, self._learn)
        found.keys.extend(keys)
        found.askers.append((len(keys), then))

    def _send(self) -> None:
        asked, self._asked = self._asked, {}
        for each in asked.values():
            peer = self._find_peer(each.shard)
            if peer is None or peer.lost:
                each(None)
            else:
                peer.ask_later(LookupEach(each.view.name, _encode(each.keys), self._seen_epoch()), each)


class _Asked:
    """One message, to be sent or under way."""

    __slots__ = ("_learn", "askers", "keys", "shard", "view")

    def __init__(self, view: ViewDefinition, shard: int, learn: Learn) -> None:
        self.view = view
        self.shard = shard
        self.keys: list[Row] = []
        self.askers: list[tuple[int, Arrived | _Gathered]] = []
        self._learn = learn

    def __call__(self, answer: object) -> None:
        rows: list[bytes | None] | None = None
        epoch = 0
        if type(answer) is FoundEach:
            self._learn(self.view, answer, self.shard)
            rows, epoch = answer.rows, answer.epoch
        position = 0
        for count, then in self.askers:
            part = None if rows is None else rows[position : position + count]
            found: list[bytes] | None = None if part is None or None in part else part  # type: ignore[assignment]
            if type(then) is _Gathered:
                then.arrived(self.shard, found, epoch)
            else:
                then(found)  # type: ignore[operator]
            position += count


class _Gathered:
    """The keys of one asker that live on several shards: `places` says where each shard's rows belong."""

    __slots__ = ("_epochs", "_is_found", "_left", "_look", "_places", "_rows", "_then")

    def __init__(self, places: dict[int, list[int]], key_count: int, look: Callable[[], list[bytes] | None], then: Arrived) -> None:
        self._places = places
        self._rows = [b""] * key_count
        self._look = look
        self._then = then
        self._left = len(places)
        self._epochs: set[int] = set()
        self._is_found = True

    def arrived(self, shard: int, rows: list[bytes] | None, epoch: int) -> None:
        self._left -= 1
        self._epochs.add(epoch)
        if rows is None:
            self._is_found = False
        else:
            for place, each in zip(self._places[shard], rows, strict=True):
                self._rows[place] = each
        if self._left:
            return
        if not self._is_found:
            self._then(None)
        else:  # what was missing is filled by now, so shared memory may have all of it as of one epoch
            self._then(self._rows if len(self._epochs) == 1 else self._look())
