"""Keys that statements have missed in shared memory, asked for together.

Everything that is asked for in one turn of the event loop is one message for each view and shard. Who asked is called back with
the rows of its keys; with None if the statement has to be executed as any other: a worker is lost, does
not have the view, or would take long to fill a key. The general path then waits, asks again and reports. So it does with
keys that live on several shards, whose answers may be of different epochs.
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

_encode = msgspec.msgpack.Encoder().encode


class Misses:
    """Of the views of so many shards, which `find_peer` gives the connections to, as far as they are there."""

    def __init__(
        self, shard_count: int, find_peer: Callable[[int], Peer | None], learn: Learn, seen_epoch: Callable[[], int]
    ) -> None:
        """`learn` is told what a shard has answered for a view; no answer may be from before `seen_epoch`."""
        self._shard_count = shard_count
        self._find_peer = find_peer
        self._learn = learn
        self._seen_epoch = seen_epoch
        self._asked: dict[tuple[bytes, int], _Asked] = {}

    def ask(self, view: ViewDefinition, keys: Sequence[Row], then: Arrived) -> bool:
        """The rows of each of these keys, as of one epoch, in a later turn of the loop; False if they cannot be asked for."""
        shard = 0 if self._shard_count == 1 else self._shard(view, keys)
        if shard is None:
            return False
        asked = self._asked
        if not asked:
            asyncio.get_running_loop().call_soon(self._send)
        found = asked.get((view.name, shard))
        if found is None:
            found = asked[view.name, shard] = _Asked(view, shard, self._learn)
        found.keys.extend(keys)
        found.askers.append((len(keys), then))
        return True

    def _shard(self, view: ViewDefinition, keys: Sequence[Row]) -> int | None:
        """Where all of these keys live, if that is one shard."""
        found = set(view.shards(view.decode_keys(_encode(keys)), self._shard_count))
        return found.pop() if len(found) == 1 else None

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
        self.askers: list[tuple[int, Arrived]] = []
        self._learn = learn

    def __call__(self, answer: object) -> None:
        rows: list[bytes | None] | None = None
        if type(answer) is FoundEach:
            self._learn(self.view, answer, self.shard)
            rows = answer.rows
        position = 0
        for count, then in self.askers:
            found = None if rows is None else rows[position : position + count]
            then(None if found is None or None in found else found)  # type: ignore[arg-type]
            position += count
