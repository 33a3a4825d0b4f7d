"""Uncommitted writes laid over the store, and their one atomic commit.

Invariants:
- A read through a transaction sees the latest committed value, or the transaction's own
  uncommitted one (READ COMMITTED).
- Each pending write keeps the version that its key had when the transaction first touched
  it, so a commit succeeds only if nobody else changed anything that was overwritten.
- Rolling back to a mark restores exactly the pending writes and checks of that moment.

A statement outside BEGIN … COMMIT runs in a transaction of its own. What a row or an index
entry is, is known above (`writing`); here there are only addresses and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from backend.store import ABSENT, ANY, PRESENT, CommitResult, Committed, Part, Store, Stored
from dataflow.errors import Condition, InvalidStatement, Retryable

Address = tuple[int, bytes]
"""(shard, key)"""
Pending = tuple[int, bytes | None]
"""(expected version, new value, or None to delete)"""

OWN = -3
"""The version reported for a value that this transaction has written and not committed."""

SIZE_BYTES_MAX = 256 << 20


class SchemaChanged(Retryable):
    """The statement was planned for another version of its table: plan again with a fresh catalog."""

    def __init__(self) -> None:
        super().__init__(Condition.TABLE_DEFINITION_CHANGED)


class TableAltering(SchemaChanged):
    """The table cannot be written to until ALTER TABLE is done with it."""


class State(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"


class Transaction:
    def __init__(self, store: Store, size_bytes_max: int = SIZE_BYTES_MAX) -> None:
        self.store = store
        self.state = State.OPEN
        self._size_bytes_max = size_bytes_max
        self._size_bytes = 0
        self._writes: dict[Address, Pending] = {}
        self._checks: dict[Address, int] = {}
        self._rows: dict[int, dict[Address, None]] = {}
        self._tables: dict[int, int] = {}
        self._undo: list[tuple[dict[Address, Any], Address, Any]] = []
        self._savepoints: list[tuple[str, int]] = []

    @property
    def is_empty(self) -> bool:
        return not self._writes

    # Reads

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
            write = self._writes.get(address)
            if write is None:
                found.append(next(stored))
            else:
                found.append(None if write[1] is None else (OWN, write[1]))
        return found

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
        while len(self._undo) > mark:
            pending, address, before = self._undo.pop()
            if before is None:
                pending.pop(address, None)
            else:
                pending[address] = before
        self._size_bytes = sum(
            len(key) + (len(value) if value is not None else 0) + 32
            for (_, key), (_, value) in self._writes.items()
        )

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
        result = await self.try_commit()
        if not isinstance(result, Committed):
            raise Retryable(Condition.DEADLOCK)

    async def try_commit(self) -> CommitResult:
        """As `commit`, but a lost race is returned. The transaction is over in any case."""
        assert self.state is State.OPEN, self.state
        self.state = State.ROLLED_BACK
        if not self._writes:
            self.state = State.COMMITTED
            return Committed(0)
        parts: dict[int, Part] = {}
        for (shard, key), (expected, value) in self._writes.items():
            part = parts.get(shard)
            if part is None:
                part = parts[shard] = Part([], [])
            if expected == ANY:
                expected = self._checks.get((shard, key), ANY)
            part.writes.append((key, expected, value))
        for address, version in self._checks.items():
            if address not in self._writes:
                parts.setdefault(address[0], Part([], [])).checks.append((address[1], version))
        result = await self.store.commit(parts, self._tables)
        if isinstance(result, Committed):
            self.state = State.COMMITTED
        return result

    def rollback(self) -> None:
        self.state = State.ROLLED_BACK
        self._writes.clear()
        self._rows.clear()
        self._undo.clear()
        self._savepoints.clear()
