"""One shard's LevelDB database: base rows, index entries, counters and the epoch log.

Invariants
- An epoch's writes, what change feeds keep of them, its transactions' outcomes, the decision made with it and the removal of
  its prepared record are one LevelDB write batch: after a crash all of it is there or nothing.
- `epoch` is the last applied epoch, stored in that same batch. What a large transaction of it writes is in the
  store before, and shows with that batch (`persistence.large_transactions`).
- With durability "fsync" a call asked to be durable returns after the log is on disk; LevelDB
  has one log, so everything written before is on disk too. With "os" the operating system
  decides, and what is lost in a power cut is a suffix of the epochs.

Keys that begin with a zero byte are the store's own (below); all others are the caller's,
made by `persistence.layout`, and their values carry versions.

The store knows no SQL, and has no thread. What it does takes as long as the disk does, so its
owner may want to call the durable methods from a thread; one call at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from dataflow.commit.epoch_effects import PersistEpoch, PreparedEpoch
from dataflow.commit.epoch_messages import ABSENT, Stage, StagePart, TransactionId
from dataflow.commit.large_writes import LargeWrites
from dataflow.errors import CorruptState
from persistence.change_feeds import ChangeFeeds
from persistence.counters import EPOCH_COUNTER, Counters
from persistence.emptied_ranges import EmptiedRanges
from persistence.files.free_space import OPENING_BYTES, RESERVE_BYTES, FreeSpace, disk_full
from persistence.files.shadow import open_database
from persistence.key_gaps import KeyGaps
from persistence.large_transactions import LargeTransactions
from persistence.layout import KINDS, fence
from persistence.outcomes import Outcomes, outcome_name, outcome_record
from persistence.overlay import OverlaidView
from persistence.row_changes import RowChanges
from persistence.view import VERSION_BYTES, History, StateView, Stored, split

Durability = Literal["fsync", "os"]

FORMAT = b"2"
"""Of all that is stored; 2 has other keys for texts that are padded with spaces."""
_FORMAT_KEY = b"\0format"
_PREPARED_KEY = b"\0prepared"
_DECISION, _TRANSACTION = b"\0d", b"\0t"
_COUNTER, _META = b"\0c", b"\0m"

HISTORY_EPOCHS = 1024
BEGINNING = 1
"""As which a store is read before its first epoch: 0 stands for now, to whoever reads."""

_encode = msgspec.msgpack.Encoder().encode
_decode_prepared = msgspec.msgpack.Decoder(PreparedEpoch).decode
_decode_decision = msgspec.msgpack.Decoder(tuple[TransactionId, ...]).decode


class ShardStore:
    """Opened by the constructor, which creates what is missing; recovery is LevelDB's."""

    def __init__(self, path: Path, durability: Durability = "fsync") -> None:
        self.path = path
        self._fsync = durability == "fsync"
        self._database, self.shadow = open_database(path, self._fsync)
        self._space = FreeSpace(path)
        self._get = self._database.now.get
        self._history = History(HISTORY_EPOCHS)
        self.epoch = self._database.stamp[0]
        self._emptied, self._rows = EmptiedRanges(self.epoch), RowChanges(self.epoch)
        self.rows_changed, self.are_unchanged = self._rows.last, self._rows.are_unchanged
        try:
            self._check_format()
            self._put_fences()
            self._outcomes = Outcomes(self._stored(_TRANSACTION))
            self._counters = Counters({name: int.from_bytes(value, "big") for name, value in self._stored(_COUNTER)}, self._persist_counter)
            prepared = self.prepared()
            self._large = LargeTransactions(self._database, None if prepared is None else prepared.large)
            self.are_absent = KeyGaps(self.first_key, self._large.writes_between).have
            if self.shadow is None:
                self._large.discard_others()
            self._overlays_changed()
            self.feeds = ChangeFeeds(self._database, self.epoch)
        except BaseException:
            self.abort()
            raise

    @property
    def waits_for_disk(self) -> bool:
        """Whether what is durable takes as long as the disk; else it is the operating system's, as a rule at once."""
        return self._fsync

    @property
    def damage(self) -> str:
        """What was found to be damaged since the store was opened."""
        return self._database.damage

    @property
    def read_only(self) -> bool:
        """Whether rows cannot be added or changed, as the disk is all but full."""
        return self.shadow is not None or not self._space.has(RESERVE_BYTES)

    def close(self) -> None:
        """Stop cleanly: the counters skip no numbers."""
        if self.shadow is not None:
            self.abort()
            return
        batch = self._database.last_batch()
        for name, number in self._counters.exact().items():
            batch.put(_COUNTER + name, number.to_bytes(8, "big"))
        self._database.write_stamped(batch)
        self._history.clear()
        self._database.close(is_clean=True)

    def abort(self) -> None:
        """Close as a crash would leave it; for tests, and for a shard that failed."""
        self._history.clear()
        if self.shadow is None:
            self._database.close(is_clean=False)
        else:
            self.shadow.close()

    def require_room(self, stage: Stage | StagePart) -> None:
        """Raises error 1021 if the disk is too full for it."""
        if stage.puts or any(value is not None for _, _, value in stage.writes) or self.shadow is not None:
            self.require_room_for_rows()
        elif stage.writes:
            self._space.require(OPENING_BYTES)

    def require_room_for_rows(self) -> None:
        """Raises error 1021 if the disk is too full for rows to be written."""
        if self.shadow is not None:
            raise disk_full(self.path, self.shadow.needed_bytes)
        self._space.require(RESERVE_BYTES)

    @property
    def can_delete(self) -> bool:
        """Whether there is room for deletions, which take some until they are compacted."""
        return self.shadow is None and self._space.has(OPENING_BYTES)

    # --- reading ---------------------------------------------------------------------------

    @property
    def readable_epoch(self) -> int:
        return max(BEGINNING, self.epoch)

    def version_of(self, key: bytes) -> int:
        """The epoch that wrote the key, or ABSENT."""
        value = self._get(key)
        return ABSENT if value is None else int.from_bytes(value[:VERSION_BYTES], "big")

    def get(self, key: bytes) -> Stored | None:
        value = self._get(key)
        return None if value is None else split(value)

    def view(self) -> StateView:
        """The state as of now, for as long as the view is kept."""
        epoch, overlays = self.epoch, self._large.overlays  # in this order: another thread may write meanwhile
        snapshot = self._database.snapshot()
        return OverlaidView(snapshot, overlays, epoch) if overlays else StateView(snapshot, epoch, self._emptied)

    def view_at(self, epoch: int) -> StateView | None:
        """The state as of `epoch`, or of now if that is not yet applied here; None if it is no longer kept."""
        if epoch < self.epoch:
            return self._history.at(epoch)
        view = self.view()
        # If the next epoch is being written meanwhile, `view` may contain it; the history is told first what was there before.
        return self._history.at(epoch) or view

    def _overlays_changed(self) -> None:
        self._get = self._get_overlaid if self._large.overlays else self._database.now.get

    def _get_overlaid(self, key: bytes) -> bytes | None:
        overlay = self._large.find(key, self.epoch)
        return self._database.now.get(key) if overlay is None else overlay.value(key)

    def approximate_bytes(self, start: bytes, stop: bytes) -> int:
        """Bytes on disk of the keys in the range; what is only in the log does not count."""
        return self._database.approximate_size(start, stop)

    # --- epochs ----------------------------------------------------------------------------

    def persist_prepared(self, record: PreparedEpoch) -> None:
        """Write the record down, durably."""
        self._put(_PREPARED_KEY, _encode(record))

    def prepared(self) -> PreparedEpoch | None:
        """The epoch that was prepared and neither applied nor discarded, if there is one."""
        value = self._get(_PREPARED_KEY)
        try:
            return None if value is None else _decode_prepared(value)
        except msgspec.DecodeError as error:
            raise CorruptState(f"prepared epoch: {error}") from error

    def discard_prepared(self, epoch: int) -> None:
        """The prepared epoch was not committed."""
        if (record := self.prepared()) is not None and record.epoch == epoch:
            self._delete([_PREPARED_KEY])

    def persist_epoch(self, epoch: PersistEpoch) -> None:
        """Apply a decided epoch."""
        self.begin_epoch(epoch)()

    def begin_epoch(self, epoch: PersistEpoch) -> Callable[[], None]:
        """What applies a decided epoch, with everything done that need not wait for the disk."""
        number = epoch.epoch
        assert number > self.epoch, f"epoch {number} after epoch {self.epoch}"
        view = self.view()
        version = number.to_bytes(VERSION_BYTES, "big")
        batch = self._database.batch(epoch.durable)
        put = batch.put
        for key, value in epoch.writes.items():
            if value is None:
                batch.delete(key)
            else:
                put(key, version + value)
        for puts in epoch.new:
            deque(map(put, puts.keys, map((version + puts.start).__add__, puts.values)), 0)
        batch.delete(_PREPARED_KEY)
        for transaction in epoch.transactions:
            put(_transaction_key(transaction), outcome_record(number, epoch.results.get(transaction, ())))
        for transaction in self._outcomes.settled(epoch.settled):
            batch.delete(_transaction_key(transaction))
        if epoch.decision is not None:
            put(_DECISION + version, _encode(epoch.decision))
        record = self.feeds.begin_epoch(batch, epoch, view)
        for notes in (self._emptied, self._rows):
            notes.begin_epoch(number, (epoch.writes, *(puts.keys for puts in epoch.new)) if epoch.large is None else None)
        before, after = self._large.begin_epoch(batch, number, epoch.writes, epoch.large)
        self._history.add(view, number - 1)

        def finish() -> None:
            record()
            before()
            self._database.write_stamped(batch, number, epoch.durable)
            after()
            self._overlays_changed()
            self._outcomes.forget(self._outcomes.settled(epoch.settled))
            self._outcomes.add(number, epoch.transactions, epoch.results)
            self.epoch = number

        return finish

    # --- large transactions ------------------------------------------------------------------

    def persist_part(self, part: StagePart) -> None:
        """Write down a part of a large transaction; it is durable with the epoch that commits it."""
        self._large.persist_part(part)

    def parts_of(self, transaction: TransactionId) -> LargeWrites:
        return self._large.parts_of(transaction)

    def discard_parts(self, transaction: TransactionId) -> None:
        """The large transaction was not committed."""
        self._large.discard(transaction)

    @property
    def is_moving(self) -> bool:
        """Whether values of large transactions wait to be put into their places, see `move`."""
        return bool(self._large.overlays)

    def move(self) -> bool:
        """Put some values into their places; True if more are left. Nothing else may be written meanwhile."""
        more = self._large.move()
        self._overlays_changed()
        return more

    def forget_overlaid(self) -> None:
        """Let go of earlier epochs that hold the values of large transactions in memory."""
        self._history.forget(lambda view: isinstance(view, OverlaidView))

    def free_landed(self, keys_max: int) -> bool:
        """Free so many values of large transactions that nobody can read any more; True if there are more."""
        return self._large.free(keys_max)

    # --- decisions of the coordinator --------------------------------------------------------

    def decision(self, epoch: int) -> tuple[TransactionId, ...] | None:
        """The spanning transactions that the epoch committed, or None if no decision is kept."""
        value = self._get(_DECISION + epoch.to_bytes(VERSION_BYTES, "big"))
        return None if value is None else _decision(value)

    def decisions(self) -> dict[int, tuple[TransactionId, ...]]:
        """Every decision that is kept, by epoch."""
        return {int.from_bytes(key, "big"): _decision(value) for key, value in self._stored(_DECISION)}

    def discard_decisions(self, epochs: Iterable[int]) -> None:
        self._delete(_DECISION + epoch.to_bytes(VERSION_BYTES, "big") for epoch in epochs)

    # --- outcomes of transactions ------------------------------------------------------------

    def epoch_of_transaction(self, transaction: TransactionId) -> int | None:
        """The epoch in which it committed here, if it did and its client may still ask."""
        return self._outcomes.epoch_of(transaction)

    def results_of_transaction(self, transaction: TransactionId) -> tuple[int, ...]:
        """What its statements have given, if the shard has run them."""
        return self._outcomes.results_of(transaction)

    def prune_transactions(self, before: int) -> None:
        """Forget the outcomes of clients that committed nothing since epoch `before`: they are gone."""
        gone = self._outcomes.of_idle_clients(before)
        self._delete(map(_transaction_key, gone))
        self._outcomes.forget(gone)

    # --- counters ------------------------------------------------------------------------------

    def allocate(self, counter: bytes, count: int, floor: int = 0, expected: int = 0) -> int:
        """See `Counters.allocate`, and with `expected` `Counters.lower`. Durable when it returns."""
        if self.shadow is not None and counter != EPOCH_COUNTER:  # as long as it is a shadow, no epoch is begun
            raise disk_full(self.path, self.shadow.needed_bytes)
        return self._counters.lower(counter, expected, floor) if expected else self._counters.allocate(counter, count, floor)

    def next_epoch(self) -> int:
        """The number of an epoch that comes after all others, for who coordinates them."""
        return self.allocate(EPOCH_COUNTER, 1, self.readable_epoch + 1)

    def counter_next(self, counter: bytes) -> int:
        """The number that would be handed out next."""
        return self._counters.peek(counter)

    def _persist_counter(self, name: bytes, reserve: int) -> None:
        self._put(_COUNTER + name, reserve.to_bytes(8, "big"))

    # --- other facts -----------------------------------------------------------------------------

    def meta(self, name: bytes) -> bytes | None:
        """A fact about the shard that its owner stored with `put_meta`."""
        return self._get(_META + name)

    def put_meta(self, name: bytes, value: bytes) -> None:
        self._put(_META + name, value)

    def first_key(self, start: bytes, stop: bytes) -> bytes | None:
        """The least stored key in the range."""
        with (now := self._database.now).reading:
            return next(now.iterator(start=start, stop=stop, include_value=False), None)

    def delete_range(self, start: bytes, stop: bytes, keys_max: int = 1_000) -> bytes | None:
        """Delete up to `keys_max` keys of a range nobody reads any more; where to go on if more may be left.

        Not part of any epoch, and not durable by itself: deleting again does no harm.
        """
        with (now := self._database.now).reading:
            keys = list(islice(now.iterator(start=start, stop=stop, include_value=False), keys_max))
        self._delete(keys)
        return keys[-1] if len(keys) == keys_max else None  # not from `start`: LevelDB would step over all that is deleted

    def _put(self, key: bytes, value: bytes) -> None:
        """Durable when it returns."""
        batch = self._database.batch(is_durable=True)
        batch.put(key, value)
        self._database.write_stamped(batch)

    def _delete(self, keys: Iterable[bytes]) -> None:
        """What is not needed any more; without waiting."""
        batch = self._database.batch()
        for key in keys:
            batch.delete(key)
        self._database.write(batch)

    def _stored(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """What is stored under the prefix, without it."""
        with (now := self._database.now).reading:
            return [(key[len(prefix) :], value) for key, value in now.iterator(prefix=prefix)]

    # --- opening -----------------------------------------------------------------------------------

    def _check_format(self) -> None:
        if (found := self._get(_FORMAT_KEY)) is None:
            self._put(_FORMAT_KEY, FORMAT)
        elif found != FORMAT:
            raise CorruptState(f"{self.path} was written in format {found!r}, this version reads {FORMAT!r}")

    def _put_fences(self) -> None:
        if self.shadow is None and any(self._get(fence(kind)) is None for kind in KINDS):
            batch = self._database.batch()
            for kind in KINDS:
                batch.put(fence(kind), bytes(VERSION_BYTES))
            self._database.write(batch)


def _transaction_key(transaction: TransactionId) -> bytes:
    return _TRANSACTION + outcome_name(transaction)


def _decision(value: bytes) -> tuple[TransactionId, ...]:
    try:
        return _decode_decision(value)
    except msgspec.DecodeError as error:
        raise CorruptState(f"decision: {error}") from error
