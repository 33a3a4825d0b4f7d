"""Reads of a shard's stored state: keys, and scans that are sent in chunks as the client asks on.

A scan belongs to the connection that began it and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend.messages import EndScan, Get, Scan, Scanned, Values
from backend.transport import Peer
from dataflow.errors import Condition, Retryable
from persistence.shard_store import ShardStore
from persistence.view import Entry, View

SCANS_PER_PEER_MAX = 1000


class ShardReads:
    """`count` is how many requests were answered."""

    def __init__(self, store: ShardStore) -> None:
        self._store = store
        self._scans: dict[int, tuple[Peer, Iterator[list[Entry]]]] = {}
        self._next_scan = 1
        self.count = 0

    @property
    def open_scans(self) -> int:
        return len(self._scans)

    def peer_lost(self, peer: Peer) -> None:
        self._scans = {number: scan for number, scan in self._scans.items() if scan[0] is not peer}

    def get(self, peer: Peer, request: int, message: Get) -> None:
        self.count += 1
        get = self._view(message.epoch).get if message.epoch else self._store.get
        peer.send(Values([get(key) for key in message.keys]), request)

    def scan(self, peer: Peer, request: int, message: Scan) -> None:
        self.count += 1
        number = message.scan
        if number:
            owner, chunks = self._scans.get(number, (None, iter(())))
            if owner is not peer:
                raise Retryable(Condition.UNKNOWN_ERROR, "the scan is not open any more")
        else:
            if sum(owner is peer for owner, _ in self._scans.values()) >= SCANS_PER_PEER_MAX:
                raise Retryable(Condition.UNKNOWN_ERROR, "too many scans at once")
            view = self._view(message.epoch)
            chunks = view.scan(message.start, message.stop, resolve=message.resolve, reverse=message.reverse)
            number = self._next_scan
            self._next_scan += 1
            self._scans[number] = (peer, chunks)
        rows = next(chunks, None)
        if rows is None:
            self._scans.pop(number, None)
            number = 0
        peer.send(Scanned(number, rows or []), request)

    def _view(self, epoch: int) -> View:
        view = self._store.view_at(epoch) if epoch else self._store.view()
        if view is None:
            raise Retryable(Condition.UNKNOWN_ERROR, f"epoch {epoch} is not kept any more")
        return view

    def end_scan(self, peer: Peer, request: int, message: EndScan) -> None:
        if message.scan in self._scans and self._scans[message.scan][0] is peer:
            del self._scans[message.scan]
