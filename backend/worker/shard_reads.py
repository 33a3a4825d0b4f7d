"""Reads of a shard's stored state: keys, and scans that are sent in chunks as the client asks on.

Reads of now see what views show: while the next epoch is written, they see the one before.
Who reads several times as of one moment holds its epoch. Scans and held epochs belong to the
connection that asked for them and go with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from backend.network.messages import (
    EndScan,
    Get,
    HoldEpoch,
    ReadableEpoch,
    ReleaseEpoch,
    Scan,
    Scanned,
    Values,
)
from backend.network.scan_messages import (
    EstimatedRows,
    EstimateRows,
    ForgetEpoch,
    KeepEpoch,
    ScanColumns,
    SplitKeys,
    SplitRange,
)
from backend.network.transport import Peer
from backend.scans.column_scans import ColumnScans
from backend.scans.kept_epochs import KeptEpochs
from dataflow.errors import Condition, Retryable
from persistence.shard_store import ShardStore
from persistence.splitting import estimated_rows, split_keys
from persistence.view import Entry, StateView, Stored

STATE_READS = (Get, Scan, ScanColumns, HoldEpoch, KeepEpoch)
"""What reads the stored state, and so waits until it is certain."""
SCANS_PER_PEER_MAX = 1000
KEYS_AT_ONCE = 250
"""So many keys are read in a few milliseconds, if they are on disk."""


class ShardReads:
    """`count` is how many requests were answered. `shown` is the epoch that is read now, if it is not the last stored."""

    def __init__(self, store: ShardStore) -> None:
        self._store = store
        self._scans: dict[int, tuple[Peer, Iterator[list[Entry]]]] = {}
        self._held: dict[tuple[Peer, int], tuple[StateView, int]] = {}
        self._next_scan = 1
        self._kept = KeptEpochs()
        self._columns = ColumnScans(self._view, self._kept.find, store.rows_changed)
        self.handlers: dict[type, Callable[[Peer, int, Any], None]] = {
            Get: self.get,
            Scan: self.scan,
            EndScan: self.end_scan,
            HoldEpoch: self.hold_epoch,
            ReleaseEpoch: self.release_epoch,
            KeepEpoch: self.keep_epoch,
            ForgetEpoch: self.forget_epoch,
            SplitRange: self.split_range,
            EstimateRows: self.estimate_rows,
            **self._columns.handlers,
        }
        self.count = 0
        self.shown: int | None = None

    @property
    def open_scans(self) -> int:
        return len(self._scans)

    def close(self) -> None:
        """Nothing is read any more when this returns."""
        self._columns.close()
        self._kept.close()
        self._scans.clear()
        self._held.clear()

    def peer_lost(self, peer: Peer) -> None:
        self._columns.peer_lost(peer)
        self._scans = {number: scan for number, scan in self._scans.items() if scan[0] is not peer}
        self._held = {key: held for key, held in self._held.items() if key[0] is not peer}

    def get(self, peer: Peer, request: int, message: Get) -> None:
        self.count += 1
        if len(message.keys) > KEYS_AT_ONCE:
            self._get_many(peer, request, message.keys, self._view(peer, message.epoch), [])
            return
        now = not message.epoch and self.shown is None
        get = self._store.get if now else self._view(peer, message.epoch).get
        peer.send(Values([get(key) for key in message.keys]), request)

    def _get_many(self, peer: Peer, request: int, keys: list[bytes], view: StateView, found: list[Stored | None]) -> None:
        """Some of the keys now, the others when others have been answered."""
        found += view.get_many(keys[len(found) : len(found) + KEYS_AT_ONCE])
        if len(found) == len(keys):
            peer.send(Values(found), request)
        elif not peer.lost:
            asyncio.get_running_loop().call_soon(self._get_many, peer, request, keys, view, found)

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
            view = self._view(peer, message.epoch)
            chunks = view.scan(message.start, message.stop, resolve=message.resolve, reverse=message.reverse)
            number = self._next_scan
            self._next_scan += 1
            self._scans[number] = (peer, chunks)
        rows = next(chunks, None)
        if rows is None:
            self._scans.pop(number, None)
            number = 0
        peer.send(Scanned(number, rows or []), request)

    def _view(self, peer: Peer, epoch: int) -> StateView:
        held = self._held.get((peer, epoch)) if epoch else None
        if held is not None:
            return held[0]
        if not epoch and self.shown is None:
            return self._store.view()
        kept = self._kept.find(epoch)
        if kept is not None:
            return kept
        view = self._store.view_at(epoch or self.shown or 0)
        if view is None:
            raise Retryable(Condition.UNKNOWN_ERROR, f"epoch {epoch} is not kept any more")
        return view

    def end_scan(self, peer: Peer, request: int, message: EndScan) -> None:
        if message.scan in self._scans and self._scans[message.scan][0] is peer:
            del self._scans[message.scan]

    def hold_epoch(self, peer: Peer, request: int, message: HoldEpoch) -> None:
        epoch = message.epoch or (self._store.readable_epoch if self.shown is None else self.shown)
        view, count = self._held.get((peer, epoch)) or (self._view(peer, message.epoch), 0)
        self._held[peer, epoch] = view, count + 1
        peer.send(ReadableEpoch(epoch), request)

    def release_epoch(self, peer: Peer, request: int, message: ReleaseEpoch) -> None:
        view, count = self._held.pop((peer, message.epoch), (None, 0))
        if view is not None and count > 1:
            self._held[peer, message.epoch] = view, count - 1

    def keep_epoch(self, peer: Peer, request: int, message: KeepEpoch) -> None:
        peer.send(ReadableEpoch(self.keep(peer, message)), request)

    def keep(self, peer: Peer, message: KeepEpoch) -> int:
        """Keep the epoch, and say which one that is."""
        epoch = message.epoch or (self._store.readable_epoch if self.shown is None else self.shown)
        self._kept.keep(message.name, epoch, self._view(peer, message.epoch), message.seconds)
        return epoch

    def forget_epoch(self, peer: Peer, request: int, message: ForgetEpoch) -> None:
        self._kept.forget(message.name)

    def split_range(self, peer: Peer, request: int, message: SplitRange) -> None:
        peer.send(SplitKeys(split_keys(self._store, message.start, message.stop, message.parts)), request)

    def estimate_rows(self, peer: Peer, request: int, message: EstimateRows) -> None:
        peer.send(EstimatedRows(estimated_rows(self._store, message.start, message.stop)), request)
