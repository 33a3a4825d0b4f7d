"""The change feeds of one shard: what epochs have changed in tables and maintained views, kept for a while.

A *record* has some changes of one epoch, each a weight and a row as its feed stores it. Records are in the order of epochs.

Invariants
- What an epoch changes in a table is part of the epoch's own batch. Only the records of a large transaction are written before
  it; they are not read until the epoch is stored, and go when the shard is opened without it.
- A view's changes are the difference between what it shows and the *copy* of what it had shown before. Both are written in
  one batch. So whatever became of the view in between, each change is recorded once.
- Records are kept as long, and as many, as their feed says; then the oldest go. `floor` is the last epoch whose records may
  have gone: who has read up to it has missed nothing.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import msgspec

from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.large_writes import LargeWrites
from dataflow.errors import CorruptState
from persistence.files.database import LevelDatabase
from persistence.layout import ROW_PREFIX_BYTES, row_prefix
from persistence.view import StateView, Stored

_DEFINITION = b"\0F"
_RECORD = b"\0G"
_COPY = b"\0H"
_HEAD = struct.Struct(">QI")
"""(when it was written in ms of Unix time, how many changes it has)"""
RECORD_BYTES_TARGET = 64 << 10
READ_BYTES_TARGET = 256 << 10
LARGE_KEYS_AT_ONCE = 1_000
PRUNED_RECORDS_MAX = 1_000
_FIRST_OF_LARGE = 1 << 20

Change = tuple[int, bytes]
"""(weight, row)"""


class FeedDefinition(msgspec.Struct, frozen=True, array_like=True):
    """`feed` is the id of the table or named view; `view` is the maintained view that is followed, empty for a table.

    `floor`, see above; -1 until a view was seen for the first time. `catalog_version` is the least that has the table or view.
    """

    feed: int
    view: bytes
    seconds: int
    bytes_max: int
    catalog_version: int
    floor: int


class FeedRecord(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    number: int
    changes: list[Change]


_encode = msgspec.msgpack.Encoder().encode
_decode_definition = msgspec.msgpack.Decoder(FeedDefinition).decode
_decode_changes = msgspec.msgpack.Decoder(list[Change]).decode
_decode_rows = msgspec.msgpack.Decoder(list[bytes]).decode


class ChangeFeeds:
    """Written to by one thread at a time, as the store is; `definitions` and reads are for any."""

    def __init__(self, database: LevelDatabase, epoch: int, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self.definitions: Mapping[int, FeedDefinition] = {}
        self._tables: dict[bytes, int] = {}
        """The tables whose changes are kept, by how the keys of their rows begin."""
        self._bytes: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}
        """The last record of a view's feed since the shard was opened."""
        for _, value in self._stored(_DEFINITION):
            self._known(_decode_definition(value))
        for definition in self.definitions.values():
            self._recover(definition, epoch)

    def bytes_of(self, feed: int) -> int:
        return self._bytes.get(feed, 0)

    def views(self) -> list[FeedDefinition]:
        """The feeds of views."""
        return [each for each in self.definitions.values() if each.view]

    # --- feeds come and go

    def keep(self, definition: FeedDefinition) -> FeedDefinition:
        """Keep changes from now on; if they are kept already, within these limits and by this view from now on. Durable."""
        before = self.definitions.get(definition.feed)
        if before is not None:
            definition = msgspec.structs.replace(definition, floor=before.floor)
        batch = self._database.batch(is_durable=True)
        self._define(batch, definition)
        self._database.write_stamped(batch)
        return definition

    def forget(self, feed: int) -> None:
        """Keep nothing of it any more. What is left after a crash is removed when that is done again."""
        if feed not in self.definitions:
            return
        batch = self._database.batch(is_durable=True)
        batch.delete(_DEFINITION + _name(feed))
        self._database.write_stamped(batch)
        self.definitions = {each: found for each, found in self.definitions.items() if each != feed}
        self._tables.pop(row_prefix(feed), None) if feed >= 0 else None
        self._bytes.pop(feed, None)
        self._last.pop(feed, None)
        for prefix in (_RECORD + _name(feed), _COPY + _name(feed)):
            while keys := list(islice(self._keys(prefix), PRUNED_RECORDS_MAX)):
                self._delete(keys)

    def _define(self, batch: Any, definition: FeedDefinition) -> None:
        batch.put(_DEFINITION + _name(definition.feed), _encode(definition))
        self._known(definition)

    def _known(self, definition: FeedDefinition) -> None:
        self.definitions = {**self.definitions, definition.feed: definition}
        if not definition.view:
            self._tables[row_prefix(definition.feed)] = definition.feed

    def _recover(self, definition: FeedDefinition, epoch: int) -> None:
        """Of what was recorded of a table for an epoch that was not stored, nothing has happened.

        A view's records belong to its copy, and stay: its keys are here, and the rows that an epoch changed may be on other shards alone.
        """
        feed, size, later = definition.feed, 0, []
        for key, value in self._stored(_RECORD + _name(feed)):
            if not definition.view and _place(key)[0] > epoch:
                later.append(_RECORD + _name(feed) + key)
            else:
                size += len(value)
        self._bytes[feed] = size
        if later:
            self._delete(later)

    # --- tables

    def begin_epoch(self, batch: Any, epoch: PersistEpoch, before: StateView) -> Callable[[], None]:
        """Put what the epoch changes in tables into its batch. What is to be done before that is written is given back."""
        if not self._tables:
            return lambda: None
        self._put_epoch(batch, epoch, before.get)
        large = epoch.large
        return (lambda: None) if large is None else lambda: self._write_large(epoch.epoch, large[1], before)

    def _put_epoch(self, batch: Any, epoch: PersistEpoch, get: Callable[[bytes], Stored | None]) -> None:
        later = {} if epoch.large is None else epoch.large[1].values
        absent = epoch.absent
        writes = ((key, value) for key, value in epoch.writes.items() if key not in later)
        changes = self._changes(writes, lambda key: None if key in absent else get(key))
        for puts in epoch.new:
            feed = self._tables.get(puts.keys[0][:ROW_PREFIX_BYTES])
            if feed is not None:
                changes.setdefault(feed, []).extend([(1, puts.start + value) for value in puts.values])
        for feed, found in changes.items():
            self._put(batch, feed, epoch.epoch, found, count())

    def _write_large(self, epoch: int, large: LargeWrites, before: StateView) -> None:
        """Write down what a large transaction changes, before the epoch that commits it is stored."""
        numbers, sizes = count(_FIRST_OF_LARGE), Counter[int]()
        for keys in large.chunks(LARGE_KEYS_AT_ONCE):
            batch = self._database.batch()
            found = self._changes(((key, large.values[key]) for key in keys), before.get)
            for feed, changes in found.items():
                definition = self.definitions[feed]
                if sizes[feed] <= definition.bytes_max:
                    sizes[feed] += self._put(batch, feed, epoch, changes, numbers)
                elif definition.floor < epoch:  # it is more than may be kept
                    self._define(batch, msgspec.structs.replace(definition, floor=epoch))
            self._database.write(batch)

    def _changes(
        self, writes: Iterable[tuple[bytes, bytes | None]], get: Callable[[bytes], Stored | None]
    ) -> dict[int, list[Change]]:
        found: dict[int, list[Change]] = {}
        for key, value in writes:
            feed = self._tables.get(key[:ROW_PREFIX_BYTES])
            if feed is None:
                continue
            old = get(key)
            if old is not None and old[1] == value:
                continue
            changes = found.setdefault(feed, [])
            if old is not None:
                changes.append((-1, old[1]))
            if value is not None:
                changes.append((1, value))
        return found

    # --- views

    def follow_view(self, feed: int, epoch: int, rows: Mapping[bytes, list[bytes]], is_whole: bool) -> None:
        """Record how these keys differ from the copy, and what is not among them if they are the whole view. Durable."""
        definition = self.definitions.get(feed)
        if definition is None:
            return
        prefix = _COPY + _name(feed)
        batch = self._database.batch(is_durable=True)
        changes: list[Change] = []
        gone = [key[len(prefix) :] for key in self._keys(prefix) if key[len(prefix) :] not in rows] if is_whole else []
        for key, now in [*rows.items(), *((key, []) for key in gone)]:
            copy = self._database.now.get(prefix + key)
            before = [] if copy is None else _decode_rows(copy)
            if (difference := _difference(before, now)):
                changes += difference
                batch.put(prefix + key, _encode(now)) if now else batch.delete(prefix + key)
        if definition.floor < 0:  # what it shows at first is no change
            self._define(batch, msgspec.structs.replace(definition, floor=epoch))
        elif changes:
            last_epoch, last_number = self._last.get(feed) or self._last_record(feed)
            numbers = count(last_number + 1 if last_epoch == epoch else 0)
            self._put(batch, feed, epoch, changes, numbers)
            self._last[feed] = epoch, next(numbers) - 1
        self._database.write(batch)

    def _last_record(self, feed: int) -> tuple[int, int]:
        prefix = _RECORD + _name(feed)
        now = self._database.now
        with now.reading:
            found = next(now.iterator(prefix=prefix, include_value=False, reverse=True), None)
        return (0, 0) if found is None else _place(found[len(prefix) :])

    # --- records

    def _put(self, batch: Any, feed: int, epoch: int, changes: list[Change], numbers: Iterator[int]) -> int:
        """Put records into the batch; how many bytes they have."""
        head, size = int(self._clock() * 1000), 0
        for some in _chunks(changes):
            value = _HEAD.pack(head, len(some)) + _encode(some)
            batch.put(_key(feed, epoch, next(numbers)), value)
            size += len(value)
        self._bytes[feed] = self._bytes.get(feed, 0) + size
        return size

    def read(self, feed: int, since: int, until: int, after: int = -1) -> tuple[list[FeedRecord], bool]:
        """Records of since < epoch ≤ until, and whether there are more.

        `after` is the number of the last record of epoch `since` that was read before, -1 if that epoch is not wanted.
        """
        start = _key(feed, since + 1, 0) if after < 0 else _key(feed, since, after + 1)
        found: list[FeedRecord] = []
        size = 0
        for key, value in self._range(start, _key(feed, until + 1, 0)):
            if size >= READ_BYTES_TARGET:
                return found, True
            found.append(FeedRecord(*_place(key[-12:]), _decoded(value)))
            size += len(value)
        return found, False

    def counts(self, feed: int, since: int, until: int, rows_max: int) -> list[tuple[int, int]]:
        """(epoch, how many changes) of since < epoch ≤ until, as far as it takes for so many changes."""
        found: dict[int, int] = {}
        total, last = 0, 0
        for key, value in self._range(_key(feed, since + 1, 0), _key(feed, until + 1, 0)):
            epoch = _place(key[-12:])[0]
            if total >= rows_max and epoch != last:
                break
            rows = _HEAD.unpack_from(value)[1]
            found[epoch] = found.get(epoch, 0) + rows
            total, last = total + rows, epoch
        return [*found.items()]

    def prune(self) -> bool:
        """Remove some records that are too old or too many; True if there may be more."""
        return bool(sum(map(self._prune, self.definitions.values())))

    def _prune(self, definition: FeedDefinition) -> bool:
        feed, oldest = definition.feed, int((self._clock() - definition.seconds) * 1000)
        size, floor = self.bytes_of(feed), definition.floor
        gone: list[bytes] = []
        for key, value in self._range(_key(feed, 0, 0), _key(feed, 1 << 63, 0)):
            epoch = _place(key[-12:])[0]
            is_kept = epoch > floor and size <= definition.bytes_max and _HEAD.unpack_from(value)[0] >= oldest
            if is_kept or len(gone) >= PRUNED_RECORDS_MAX:
                break
            gone.append(key)
            size, floor = size - len(value), max(floor, epoch)
        if not gone:
            return False
        batch = self._database.batch()
        for key in gone:
            batch.delete(key)
        self._define(batch, msgspec.structs.replace(definition, floor=floor))
        self._database.write(batch)
        self._bytes[feed] = size
        return len(gone) >= PRUNED_RECORDS_MAX

    # --- the database

    def _range(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        now = self._database.now
        with now.reading:
            yield from now.iterator(start=start, stop=stop)

    def _stored(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        now = self._database.now
        with now.reading:
            for key, value in now.iterator(prefix=prefix):
                yield key[len(prefix) :], value

    def _keys(self, prefix: bytes) -> Iterator[bytes]:
        now = self._database.now
        with now.reading:
            yield from now.iterator(prefix=prefix, include_value=False)

    def _delete(self, keys: Iterable[bytes]) -> None:
        batch = self._database.batch()
        for key in keys:
            batch.delete(key)
        self._database.write(batch)


def _name(feed: int) -> bytes:
    return (feed + (1 << 63)).to_bytes(8, "big")


def _key(feed: int, epoch: int, number: int) -> bytes:
    return _RECORD + _name(feed) + epoch.to_bytes(8, "big") + number.to_bytes(4, "big")


def _place(key: bytes) -> tuple[int, int]:
    """The epoch and the number of a record."""
    return int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")


def _decoded(value: bytes) -> list[Change]:
    try:
        return _decode_changes(value[_HEAD.size :])
    except msgspec.DecodeError as error:
        raise CorruptState(f"a record of changes: {error}") from error


def _difference(before: list[bytes], now: list[bytes]) -> list[Change]:
    if before == now:
        return []
    weights = Counter(now)
    weights.subtract(before)
    return sorted((weight, row) for row, weight in weights.items() if weight)


def _chunks(changes: list[Change]) -> Iterator[list[Change]]:
    some: list[Change] = []
    size = 0
    for change in changes:
        some.append(change)
        size += len(change[1]) + 8
        if size >= RECORD_BYTES_TARGET:
            yield some
            some, size = [], 0
    if some:
        yield some
