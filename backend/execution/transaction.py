"""Uncommitted writes laid over the store, and their one atomic commit.

Invariants:
- A read through a transaction sees the latest committed value, or the transaction's own
  uncommitted one (READ COMMITTED). If it is `repeatable`, all that is selected is as of the epoch
  of the first (REPEATABLE READ); what is changed or locked is the latest all the same.
- Each pending write keeps the version that its key had when the transaction first touched
  it, so a commit succeeds only if nobody else changed anything that was overwritten.
- Rolling back to a mark restores exactly the pending writes and checks of that moment.
- Locks are kept until the transaction is over. They make others wait; that nobody has changed
  anything is checked at the commit all the same.

A statement outside BEGIN … COMMIT runs in a transaction of its own. What a row or an index
entry is, is known above (`writing`); here there are only addresses and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from backend.clustering.store import (
    ABSENT,
    ANY,
    PRESENT,
    Address,
    CommitPart,
    CommitResult,
    Committed,
    Locked,
    Puts,
    Store,
    Stored,
)
from backend.execution.held_locks import HeldLocks, LockRefused
from backend.execution.pace import breathe, parts, undisturbed
from backend.execution.rows import drop
from controller.sql.locking import EXCLUSIVE, Locking
from dataflow.errors import Condition, InvalidStatement, Retryable

Pending = tuple[int, bytes | None]
"""(expected version, new value, or None to delete)"""

OWN = -3
"""The version reported for a value that this transaction has written and not committed."""

SIZE_BYTES_MAX = 256 << 20


class SchemaChanged(Retryable):
    """The statement was planned for another version of its table: plan again with a fresh catalog."""

    def __init__(self) -> None:
        super().__init__(Condition.TABLE_DEFINITION_CHANGED)


class RowsChanged(Retryable):
    """A row is not any more what the statement saw before it had locked it: run it again."""

    def __init__(self) -> None:
        super().__init__(Condition.DEADLOCK)


class EpochLost(Retryable):
    """A shard was lost, and with it the epoch that the statement was reading: run it again."""

    def __init__(self) -> None:
        super().__init__(Condition.UNKNOWN_ERROR, "the epoch of the statement is not kept any more")


class TableAltering(SchemaChanged):
    """The table cannot be written to until ALTER TABLE is done with it."""


class State(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"


class Transaction:
    """With `locking`, rows are locked before they are changed; without, only those that a statement asks to be."""

    def __init__(
        self,
        store: Store,
        size_bytes_max: int = SIZE_BYTES_MAX,
        locks: HeldLocks | None = None,
        locking: bool = False,
        repeatable: bool = False,
        epoch: int | None = None,
    ) -> None:
        """`epoch` is what a repeatable one sees; it has been held for it."""
        self.store = store
        self.repeatable = repeatable
        self.locks = locks or HeldLocks(store)
        self.locking = locking
        self.state = State.OPEN
        self._size_bytes_max = size_bytes_max
        self._size_bytes = 0
        self._writes: dict[Address, Pending] = {}
        self._checks: dict[Address, int] = {}
        self._rows: dict[int, dict[Address, None]] = {}
        self._tables: dict[int, int] = {}
        self._epoch = epoch
        self._puts: dict[int, list[Puts]] = {}
        self._undo: list[tuple[dict[Address, Any], Address, Any]] = []
        self._savepoints: list[tuple[str, int]] = []

    @property
    def is_empty(self) -> bool:
        return not self._writes and not self._puts

    # Reads

    @property
    def may_use_views(self) -> bool:
        """Whether it sees just what is committed now, as views show it."""
        return not self._writes and not self.repeatable

    async def epoch(self) -> int:
        """The epoch that all of a repeatable transaction's SELECTs see."""
        assert self.repeatable and self.state is State.OPEN
        if self._epoch is None:
            self._epoch = await self.store.hold_epoch()
        return self._epoch

    def _release_epoch(self) -> None:
        if self._epoch is not None:
            self.store.release_epoch(self._epoch)
            self._epoch = None

    def pending(self, address: Address) -> Pending | None:
        return self._writes.get(address)

    def pending_rows(self, table_id: int) -> Iterator[tuple[Address, bytes | None]]:
        """The rows of a table that this transaction has written, with None for deleted ones."""
        for address in self._rows.get(table_id, ()):
            write = self._writes.get(address)
            if write is not None:
                yield address, write[1]

    async def get(self, addresses: Sequence[Address], epoch: int = 0) -> list[Stored | None]:
        """What is stored as of `epoch`, or of now, with the transaction's own writes over it."""
        if not self._writes:
            return await self.store.get(addresses, epoch) if addresses else []
        missing = [address for address in addresses if address not in self._writes]
        stored = iter(await self.store.get(missing, epoch) if missing else ())
        found: list[Stored | None] = []
        for address in addresses:
            breathe()
            write = self._writes.get(address)
            if write is None:
                found.append(next(stored))
            else:
                found.append(None if write[1] is None else (OWN, write[1]))
        return found

    async def get_locked(self, addresses: Sequence[Address], locking: Locking) -> list[Stored | None]:
        """As `get` of now, for keys that are locked from then on; those that were skipped are not there."""
        if not addresses:
            return []
        if self.locks.missing(addresses, locking.shared) or not self._writes.keys() >= set(addresses):
            stored, skipped = await self.locks.lock(addresses, locking)
        else:  # they are ours, and so is what they hold
            stored, skipped = [None] * len(addresses), []
        for place in skipped:
            stored[place] = None
        for place, address in enumerate(addresses):
            write = self._writes.get(address)
            if write is not None:
                stored[place] = None if write[1] is None else (OWN, write[1])
        return stored

    async def lock_found(self, found: Sequence[tuple[Address, int]], locking: Locking) -> set[Address]:
        """Lock what was read with these versions; what was skipped. `RowsChanged` if a row has another by now."""
        versions = {address: version for part in parts(found) for address, version in part if version != OWN}
        missing = self.locks.missing(versions, locking.shared)
        if not missing:
            return set()
        stored, skipped = await self.locks.lock(missing, locking)
        left_out = {missing[place] for place in skipped}
        for address, value in zip(missing, stored):
            if address not in left_out and (value is None or value[0] != versions[address]):
                raise RowsChanged
        return left_out

    # Writes

    def use_table(self, table_id: int, version: int) -> None:
        """Writes to the table are encoded for this version of it, which the commit will check."""
        if self._tables.setdefault(table_id, version) != version:
            raise Retryable(Condition.DEADLOCK)

    def put_row(self, table_id: int, address: Address, expected: int, value: bytes | None) -> None:
        self._rows.setdefault(table_id, {})[address] = None
        self.put(address, expected, value)

    def put(self, address: Address, expected: int, value: bytes | None) -> None:
        """Write a value, or delete with None; `expected` counts only at the first touch."""
        before = self._writes.get(address)
        self._undo.append((self._writes, address, before))
        if before is not None:
            expected = before[0]
        if value is None and expected == ABSENT:
            self._writes.pop(address, None)
            return
        self._writes[address] = (expected, value)
        self._size_bytes += len(address[1]) + (len(value) if value is not None else 0) + 32
        if self._size_bytes > self._size_bytes_max:
            raise InvalidStatement(Condition.TRANSACTION_TOO_LARGE)

    def put_all(self, shard: int, puts: Puts) -> None:
        """Write many values at once. Nothing is read or rolled back after this, the transaction is only committed."""
        self._puts.setdefault(shard, []).append(puts)
        self._size_bytes += sum(map(len, puts.keys)) + sum(map(len, puts.values)) + (32 + len(puts.start)) * len(puts.keys)
        if self._size_bytes > self._size_bytes_max:
            raise InvalidStatement(Condition.TRANSACTION_TOO_LARGE)

    def check(self, address: Address, version: int) -> None:
        """The commit must find the key unchanged: what a row lock is to others.

        `version` may be PRESENT. It counts for keys too that are written with expectation ANY.
        """
        if version != OWN and self._checks.get(address, PRESENT) == PRESENT:
            self._undo.append((self._checks, address, self._checks.get(address)))
            self._checks[address] = version

    # Marks and savepoints

    def mark(self) -> int:
        return len(self._undo)

    def rollback_to_mark(self, mark: int) -> None:
        with undisturbed():
            while len(self._undo) > mark:
                breathe()
                pending, address, before = self._undo.pop()
                if before is None:
                    pending.pop(address, None)
                else:
                    pending[address] = before
            self._size_bytes = 0
            for (_, key), (_, value) in self._writes.items():
                breathe()
                self._size_bytes += len(key) + (len(value) if value is not None else 0) + 32

    def savepoint(self, name: str) -> None:
        """Set a savepoint; one of the same name is replaced."""
        folded = name.lower()
        self._savepoints = [point for point in self._savepoints if point[0] != folded]
        self._savepoints.append((folded, self.mark()))

    def rollback_to(self, name: str) -> None:
        position = self._position(name)
        self.rollback_to_mark(self._savepoints[position][1])
        del self._savepoints[position + 1 :]

    def release(self, name: str) -> None:
        del self._savepoints[self._position(name) :]

    def _position(self, name: str) -> int:
        for position, (point, _) in enumerate(self._savepoints):
            if point == name.lower():
                return position
        raise InvalidStatement(Condition.SAVEPOINT_MISSING, name)

    # The end

    async def commit(self) -> None:
        """Make everything durable at once, or raise 1213 with nothing written."""
        try:
            result = await self.try_commit()
            while isinstance(result, Locked):
                try:
                    await self.locks.lock([(result.shard, result.key)], EXCLUSIVE)
                except LockRefused:
                    raise Retryable(Condition.DEADLOCK) from None  # the transaction is over, not a statement
                self.state = State.OPEN
                result = await self.try_commit()
        finally:
            self.locks.release()
            self._release_epoch()
        if not isinstance(result, Committed):
            raise Retryable(Condition.DEADLOCK)

    async def try_commit(self) -> CommitResult:
        """As `commit`, but a lost race is returned, and locks are kept unless it happened."""
        assert self.state is State.OPEN, self.state
        self.state = State.ROLLED_BACK
        if self.is_empty:
            self.state = State.COMMITTED
            return Committed(0)
        staged = {shard: CommitPart([], [], puts) for shard, puts in self._puts.items()}
        for (shard, key), (expected, value) in self._writes.items():
            breathe()
            part = staged.get(shard)
            if part is None:
                part = staged[shard] = CommitPart([], [])
            if expected == ANY:
                expected = self._checks.get((shard, key), ANY)
            part.writes.append((key, expected, value))
        for address, version in self._checks.items():
            breathe()
            if address not in self._writes:
                staged.setdefault(address[0], CommitPart([], [])).checks.append((address[1], version))
        result = await self.store.commit(staged, self._tables, self.locks.owner)
        if isinstance(result, Committed):
            self.state = State.COMMITTED
            self.locks.released(staged)
            self._forget()
        return result

    def rollback(self) -> None:
        self.state = State.ROLLED_BACK
        self.locks.release()
        self._release_epoch()
        self._forget()
        self._savepoints.clear()

    def _forget(self) -> None:
        """What was written is not needed any more, however much it was."""
        for kept in (self._writes, self._checks, self._undo):
            drop(kept)
        for rows in self._rows.values():
            drop(rows)
        self._writes, self._checks, self._undo, self._rows, self._puts = {}, {}, [], {}, {}
