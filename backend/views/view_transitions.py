"""How views of several shards come and go: by transitions, which all shards make in the same epoch.

Shard 0 takes the requests, decides once for all shards whether a view is kept whole, and hands transitions to the coordinator.
Every shard knows which views it has, and the versions of the tables that they read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from backend.network.messages import Acknowledged, AddView, Message, UnknownView
from backend.network.transport import Peer
from backend.network.view_messages import RemoveView
from backend.views.hosted_view import HostedView, definition_of
from backend.views.known_view import KnownView, known_view
from backend.views.set_aside import SetAsideViews
from backend.views.small_tables import BYTES_IN_MEMORY, SmallTables, is_too_large
from backend.views.view_restarting import stored_bytes
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.runtime.shard_messages import EndView, StartView
from persistence.shard_store import ShardStore
from persistence.table_source import TableSource

LOADED_BYTES_MAX = 4 << 20
"""All rows of a table that takes no more than this on a shard's disk are read within one epoch, for which all wait."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_decode_transition = msgspec.msgpack.Decoder(tuple[str, bytes, str]).decode
"""What is done, the view, and why it is kept whole."""
_decode_view = msgspec.msgpack.Decoder(AddView).decode


def decoded(transition: bytes) -> tuple[KnownView, StartView] | EndView:
    kind, body, full = _decode_transition(transition)
    if kind == RemoveView.__name__:
        return EndView(body)
    known = known_view(_decode_view(body))
    return known, StartView(known.name, *known.definition, full)


class ViewTransitions:
    """`change` has all shards make a transition, and is False while one is missing; `full_bytes` says what is taken by views that cannot leave."""

    def __init__(
        self, store: ShardStore, shard_count: int, memory_bytes: int, change: Callable[[bytes], bool], full_bytes: Callable[[], int]
    ) -> None:
        self._store = store
        self._shard_count = shard_count
        self._memory_bytes = memory_bytes
        self._change = change
        self._full_bytes = full_bytes
        self.known: dict[bytes, KnownView] = {}
        self.hosted: dict[bytes, HostedView] = {}
        self.aside = SetAsideViews()
        self._small = SmallTables()
        self._adding: dict[bytes, tuple[KnownView, list[tuple[Peer, int]]]] = {}

    def keep_small(self, rows_max: int) -> None:
        self._small.rows_max = rows_max // self._shard_count

    def forget(self) -> None:
        """All views are gone; who waits for one is told so."""
        self.known.clear()
        self.hosted.clear()
        adding, self._adding = self._adding, {}
        for _, waiting in adding.values():
            _answer(waiting, UnknownView())

    def add(self, peer: Peer, request: int, message: AddView, versions: Mapping[int, int]) -> None:
        """Have a view kept; answered when it can be asked, or if it cannot be."""
        if message.view in self.hosted:
            peer.send(Acknowledged(), request)
            return
        if message.view in self._adding:
            self._adding[message.view][1].append((peer, request))
            return
        known = known_view(message)
        full = None if known.is_stale(versions) or message.view in self.aside else self._fullness(known)
        if full is None or not self._change(_encode((AddView.__name__, _encode(message), full))):
            peer.send(UnknownView(), request)
        else:
            self._adding[message.view] = (known, [(peer, request)])

    def _fullness(self, known: KnownView) -> str | None:
        """Why the view is kept whole, '' if it may be partial; None if there is no room for it. All shards have about the same."""
        source = TableSource(self._store.view(), is_all=False)
        known.learn(source)
        room_bytes = min(self._memory_bytes - self._full_bytes(), LOADED_BYTES_MAX * BYTES_IN_MEMORY)
        if is_too_large(known.definition, source, stored_bytes(self._store, known.tables), room_bytes, self._shard_count):
            return None
        return self._small.reason(known.definition, source)

    def landed(self, versions: Mapping[int, int]) -> None:
        """All shards are at the epoch, so whoever asked for a view in it can look there."""
        added = [name for name in self._adding if name in self.hosted]
        for name in added:
            _answer(self._adding.pop(name)[1], Acknowledged())
        if added:
            self.remove_stale(versions)

    def retire(self, idle: Iterable[bytes]) -> None:
        """Those that nobody uses go, and those that were kept whole and have grown."""
        for name in {*idle, *self._small.outgrown(self.hosted)}:
            log.info("view %s retires", name.hex())
            self._remove(name)

    def remove_stale(self, versions: Mapping[int, int]) -> None:
        """Have the views over changed tables go."""
        for name, known in self.known.items():
            if known.is_stale(versions):
                self._remove(name)

    def _remove(self, name: bytes) -> None:
        self._change(_encode((RemoveView.__name__, name, "")))

    def has_stale(self, versions: Mapping[int, int]) -> bool:
        """Whether views over changed tables are there, or about to be."""
        known = [*self.known.values(), *[each for each, _ in self._adding.values()]]
        return any(each.is_stale(versions) for each in known)

    def blame(self, failed: ViewsFailed) -> None:
        """Set aside who is to blame. If that is not known, nobody is."""
        views = self.known | {name: known for name, (known, _) in self._adding.items()}
        for name in views.keys() & {*failed.suspects}:
            hosted = self.hosted.get(name)
            self.aside.blame(views[name], failed, "" if hosted is None else definition_of(hosted.view))


def _answer(waiting: list[tuple[Peer, int]], message: Message) -> None:
    for peer, request in waiting:
        peer.send(message, request)
