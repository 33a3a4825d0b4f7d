"""The large transactions of one shard: their parts, the record of their commit, and the way into their places.

Parts are written one by one, before anything is decided. The epoch that commits the transaction writes no more than
a record of that: its *mark*. From then on the values show (`persistence.overlay`), and are put into their
places, some at a time, while other epochs go on. When all are there, mark and parts go.

After a crash, parts with a mark are shown again and put into their places once more; parts without one go, unless
the epoch that was prepared needs them. A later epoch that writes a key before its value has come to its place says
so in its own batch, so that the value never comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import ReferenceType, ref

import msgspec

from dataflow.commit.epoch_messages import StagePart, TransactionId
from dataflow.commit.large_writes import LargeWrites
from dataflow.errors import CorruptState
from persistence.files.database import LevelDatabase
from persistence.overlay import Overlay, Overlays, shown
from persistence.view import VERSION_BYTES

_PART = b"\0w"
_MARK = b"\0l"
_SUPERSEDED = b"\0s"
_SEQUENCE_BYTES, _NUMBER_BYTES = 8, 4
MOVED_KEYS = 250
"""So many values are put into their places at a time."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]]).decode


class LargeTransactions:
    """`overlays` are the committed ones, the latest first. All methods but reads: one call at a time."""

    def __init__(self, database: LevelDatabase, prepared: TransactionId | None) -> None:
        self._database = database
        self.overlays: Overlays = ()
        self._landed: list[tuple[ReferenceType[Overlay], LargeWrites]] = []
        """Those whose values are in their places, as long as readers of earlier epochs may want them, and until they are freed."""
        self._moving: tuple[Overlay, Iterator[list[bytes]]] | None = None
        self._prepared = prepared
        self._recover()

    # --- parts

    def persist_part(self, part: StagePart) -> None:
        """Not durable by itself: whatever durable is written later makes it so."""
        batch = self._database.batch()
        batch.put(_part_key(part.transaction, part.number), _encode(list(part.pairs())))
        self._database.write(batch)

    def parts_of(self, transaction: TransactionId) -> LargeWrites:
        writes = LargeWrites()
        for _, part in self._stored(_part_key(transaction)):
            try:
                writes.add(_decode(part))
            except msgspec.DecodeError as error:
                raise CorruptState(f"a part of a large transaction: {error}") from error
        return writes

    def discard(self, transaction: TransactionId) -> None:
        """It was not committed."""
        batch = self._database.batch()
        self._delete(batch, _part_key(transaction))
        self._database.write(batch)

    def _delete(self, batch: Any, prefix: bytes) -> None:
        for key in self._keys(prefix):
            batch.delete(key)

    def _keys(self, prefix: bytes) -> list[bytes]:
        now = self._database.now
        with now.reading:
            return list(now.iterator(prefix=prefix, include_value=False))

    def _stored(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """(key without the prefix, value)"""
        now = self._database.now
        with now.reading:
            for key, value in now.iterator(prefix=prefix):
                yield key[len(prefix) :], value

    # --- epochs

    def begin_epoch(
        self, batch: Any, epoch: int, keys: Iterable[bytes], large: tuple[TransactionId, LargeWrites] | None
    ) -> tuple[Callable[[], None], Callable[[], None]]:
        """Put into an epoch's batch what it does to large transactions: `keys` are written in it, `large` is committed.

        Gives what to do before the batch is written, and after.
        """
        version = epoch.to_bytes(VERSION_BYTES, "big")
        later = [(each, [k for k in keys if k in each.writes.values]) for each in self.overlays]
        for key in {key for _, some in later for key in some}:
            batch.put(_SUPERSEDED + key, version)
        if large is not None:
            batch.put(_MARK + _name(large[0]), version)

        def before() -> None:
            for overlay, some in later:
                for key in some:
                    overlay.superseded.setdefault(key, epoch)

        def after() -> None:
            if large is not None:
                self.overlays = (Overlay(large[0], epoch, large[1]), *self.overlays)

        return before, after

    # --- into their places

    def move(self) -> bool:
        """Put some values into their places; True if more are left to be done."""
        if not self.overlays:
            return False
        if self._moving is None:
            oldest = self.overlays[-1]
            self._moving = oldest, oldest.writes.chunks(MOVED_KEYS)
        overlay, chunks = self._moving
        keys = next(chunks, None)
        if keys is None:
            self._end(overlay)
            return bool(self.overlays)
        batch = self._database.batch()
        for key in keys:
            if key not in overlay.superseded:
                value = overlay.value(key)
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
        self._database.write(batch)
        return True

    def _end(self, overlay: Overlay) -> None:
        """All is in its place: for good, as LevelDB's log keeps the order."""
        batch = self._database.batch()
        batch.delete(_MARK + _name(overlay.transaction))
        self._delete(batch, _part_key(overlay.transaction))
        if len(self.overlays) == 1:
            self._delete(batch, _SUPERSEDED)
        self._database.write(batch)
        self._landed.append((ref(overlay), overlay.writes))
        self.overlays = self.overlays[:-1]
        self._moving = None

    def free(self, keys_max: int) -> bool:
        """Free so many values that nobody can read any more; True if there are more to be freed."""
        for place, (overlay, writes) in enumerate(self._landed):
            if overlay() is None:
                if not writes.shrink(keys_max):
                    del self._landed[place]
                return True
        return False

    def find(self, key: bytes, epoch: int) -> Overlay | None:
        return shown(self.overlays, key, epoch)

    def writes_between(self, start: bytes, stop: bytes) -> bool:
        """Whether one of those that are not in their places yet has keys from `start` to before `stop`."""
        return any(overlay.writes.count_between(start, stop) for overlay in self.overlays)

    # --- after a restart

    def _recover(self) -> None:
        marks = [
            (int.from_bytes(version, "big"), _transaction(name))
            for name, version in self._stored(_MARK)
        ]
        overlays = [Overlay(name, epoch, self.parts_of(name)) for epoch, name in sorted(marks, reverse=True)]
        for key, version in self._stored(_SUPERSEDED):
            epoch = int.from_bytes(version, "big")
            for overlay in overlays:
                if overlay.epoch < epoch and key in overlay.writes.values:
                    overlay.superseded[key] = epoch
        self.overlays = tuple(overlays)

    def discard_others(self) -> None:
        """After a restart: parts go whose transactions were neither committed nor prepared."""
        kept = {_part_key(overlay.transaction) for overlay in self.overlays}
        if self._prepared is not None:
            kept.add(_part_key(self._prepared))
        gone = [key for key in self._keys(_PART) if key[:-_NUMBER_BYTES] not in kept]
        if gone:
            batch = self._database.batch()
            for key in gone:
                batch.delete(key)
            self._database.write(batch)


def _name(transaction: TransactionId) -> bytes:
    client, sequence = transaction
    return client + sequence.to_bytes(_SEQUENCE_BYTES, "big")


def _transaction(name: bytes) -> TransactionId:
    return name[:-_SEQUENCE_BYTES], int.from_bytes(name[-_SEQUENCE_BYTES:], "big")


def _part_key(transaction: TransactionId, number: int | None = None) -> bytes:
    return _PART + _name(transaction) + (b"" if number is None else number.to_bytes(_NUMBER_BYTES, "big"))
