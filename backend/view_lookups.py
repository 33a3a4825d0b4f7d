"""A worker's answers to those who look keys of its views up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from backend.messages import Found, Lookup, UnknownView
from backend.miss_messages import FoundEach, LookupEach
from backend.shard_reads import ShardReads
from backend.transport import Peer
from backend.view_range import EncodedRange


class Views(Protocol):
    def lookup_shared(self, name: bytes, keys: bytes, part: EncodedRange | None) -> tuple[list[bytes], str] | None: ...

    def lookup_each(self, name: bytes, keys: bytes) -> tuple[list[bytes | None], str] | None: ...


class ViewLookups:
    """They are counted as reads."""

    def __init__(self, views: Views, reads: ShardReads) -> None:
        self._views = views
        self._reads = reads
        self.handlers: dict[type, Callable[[Peer, int, Any], None]] = {Lookup: self.lookup, LookupEach: self.lookup_each}

    def lookup(self, peer: Peer, request: int, message: Lookup) -> None:
        self._reads.count += 1
        found = self._views.lookup_shared(message.view, message.keys, message.part)
        peer.send(UnknownView() if found is None else Found(*found), request)

    def lookup_each(self, peer: Peer, request: int, message: LookupEach) -> None:
        found = self._views.lookup_each(message.view, message.keys)
        if found is None:
            peer.send(UnknownView(), request)
            return
        self._reads.count += len(found[0])
        peer.send_now(FoundEach(*found), request)
