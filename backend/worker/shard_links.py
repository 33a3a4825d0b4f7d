"""A worker's connections to the other workers, over which bundles go directly.

The worker with the higher number connects to the one with the lower and says who it is; with shard 0 it shares
the coordinator's connection. A bundle for a worker that there is no connection to yet waits for it. One that was under way when a
connection ended is lost, and the views that wait for it with it: the worker is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from backend.network.bundles import BundleSent
from backend.network.transport import Peer

PATIENCE_S = 5.0
"""How long bundles wait for a connection, before the views that need them are given up."""


class ShardLinks:
    def __init__(self, broken: Callable[[], None]) -> None:
        """`broken` is called when a connection has ended, or does not come."""
        self._broken = broken
        self._peers: dict[int, Peer] = {}
        self._waiting: dict[int, list[bytes]] = {}

    def found(self, shard: int, peer: Peer) -> None:
        """The shard is at the other end."""
        before, self._peers[shard] = self._peers.get(shard), peer
        if before is not None and before is not peer:
            self._broken()
        for bundle in self._waiting.pop(shard, ()):
            peer.send(BundleSent(bundle))

    def lost(self, peer: Peer) -> None:
        """The connection has ended, whoever was there."""
        for shard, each in list(self._peers.items()):
            if each is peer:
                del self._peers[shard]
                self._broken()

    def knows(self, peer: Peer) -> bool:
        """Whether a shard is at the other end."""
        return any(each is peer for each in self._peers.values())

    def send(self, shard: int, bundle: bytes) -> None:
        peer = self._peers.get(shard)
        if peer is None:
            if shard not in self._waiting:
                asyncio.get_running_loop().call_later(PATIENCE_S, self._waited, shard, self._waiting.setdefault(shard, []))
            self._waiting[shard].append(bundle)
        else:
            peer.send(BundleSent(bundle))

    def _waited(self, shard: int, bundles: list[bytes]) -> None:
        if self._waiting.get(shard) is bundles:
            del self._waiting[shard]
            self._broken()

    def forget(self) -> None:
        """What waits is of views that are forgotten."""
        self._waiting.clear()
