"""Large transactions that are committed, while their values are on the way to their places.

An overlay lies over the stored state: what it has for a key counts from its epoch on, until a later epoch writes
the key. Values are put into their places without anybody noticing, as what is there already is what the overlay
shows. An overlay is not changed after its epoch but for that: a key that was written later is `superseded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import groupby
from math import inf
from operator import gt, lt
from typing import Any

from dataflow.commit.epoch_messages import TransactionId
from dataflow.commit.large_writes import LargeWrites
from persistence.files.database import ReadSource
from persistence.view import VERSION_BYTES, StateView

Pair = tuple[bytes, bytes]
Overlays = tuple["Overlay", ...]
"""The latest first."""


class Overlay:
    """`superseded` tells the epoch that has written a key first after this one."""

    def __init__(self, transaction: TransactionId, epoch: int, writes: LargeWrites) -> None:
        self.transaction = transaction
        self.epoch = epoch
        self.writes = writes
        self.superseded: dict[bytes, int] = {}
        self._version = epoch.to_bytes(VERSION_BYTES, "big")

    def shows(self, key: bytes, epoch: int) -> bool:
        """Whether it says what the key has at `epoch`."""
        return self.epoch <= epoch and key in self.writes.values and epoch < self.superseded.get(key, inf)

    def value(self, key: bytes) -> bytes | None:
        """As it is stored, with its version; None if the key is deleted."""
        value = self.writes.values[key]
        return None if value is None else self._version + value


def shown(overlays: Overlays, key: bytes, epoch: int) -> Overlay | None:
    """The overlay that says what the key has at `epoch`."""
    for overlay in overlays:
        if overlay.shows(key, epoch):
            return overlay
    return None


class OverlaidView(StateView):
    """A view of a snapshot of the database with what lies over it."""

    __slots__ = ()

    def __init__(self, snapshot: ReadSource, overlays: Overlays, epoch: int) -> None:
        super().__init__(_OverlaidSnapshot(snapshot, overlays, epoch), epoch)


class _OverlaidSnapshot:
    """Read as the snapshot of a database is."""

    def __init__(self, snapshot: ReadSource, overlays: Overlays, epoch: int) -> None:
        self.reading = snapshot.reading
        self._snapshot = snapshot
        self._overlays = overlays
        self._epoch = epoch

    def get(self, key: bytes) -> bytes | None:
        overlay = shown(self._overlays, key, self._epoch)
        return self._snapshot.get(key) if overlay is None else overlay.value(key)

    def iterator(
        self, start: bytes | None = None, stop: bytes | None = None, reverse: bool = False, include_key: bool = True
    ) -> Iterator[Any]:
        pairs = self._pairs(start, stop, reverse)
        return pairs if include_key else (value for _, value in pairs)

    def _pairs(self, start: bytes | None, stop: bytes | None, reverse: bool) -> Iterator[Pair]:
        is_before: Callable[[bytes, bytes], bool] = gt if reverse else lt
        stored: Iterator[Pair] = self._snapshot.iterator(start=start, stop=stop, reverse=reverse)
        pair = next(stored, None)
        for key in self._keys(start, stop, reverse):
            overlay = shown(self._overlays, key, self._epoch)
            if overlay is None:
                continue
            while pair is not None and is_before(pair[0], key):
                yield pair
                pair = next(stored, None)
            if pair is not None and pair[0] == key:
                pair = next(stored, None)
            value = overlay.value(key)
            if value is not None:
                yield key, value
        while pair is not None:
            yield pair
            pair = next(stored, None)

    def _keys(self, start: bytes | None, stop: bytes | None, reverse: bool) -> Iterator[bytes]:
        found = [overlay.writes.keys_between(start, stop, reverse) for overlay in self._overlays]
        return found[0] if len(found) == 1 else (key for key, _ in groupby(merge(*found, reverse=reverse)))
