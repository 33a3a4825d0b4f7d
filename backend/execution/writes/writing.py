"""Rows written together with their index entries, checked for duplicates one after the other.

Invariant: a row and its entries change in the same commit, so whoever holds the row's
version holds its entries too; only keys that must be new are expected to be absent.

Reads are batched: callers say ahead which rows they are going to write (`prefetch_…`), and
the writes then run without waiting. `assume_absent` skips even that: an INSERT that
expects no duplicates finds out at the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from backend.clustering.store import ABSENT, ANY, Address, Stored
from backend.execution.answering.sorting import sort_rows
from backend.execution.evaluation.reading import READ_AT_ONCE, Found, table_writer
from backend.execution.pace import breathe, parts
from backend.execution.transaction import OWN, TableAltering, Transaction
from controller.sql.locking import EXCLUSIVE
from dataflow.schema import Index, Table
from dataflow.values.types import Row
from persistence.layout import Entry


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The row stored under `row_key` already has the same key in `index`."""

    index: Index
    row_key: bytes


class RowWriter:
    def __init__(self, transaction: Transaction, table: Table, assume_absent: bool = False) -> None:
        self.transaction = transaction
        self.table = table
        self.assume_absent = assume_absent
        self._writer = table_writer(table)
        self._shard_of = transaction.store.shard_of
        self._known: dict[Address, Stored | None] = {}
        self._indexes = {index.id: index for index in table.indexes}
        if table.altering:
            raise TableAltering
        transaction.use_table(table.id, table.version)

    # Reads

    async def prefetch_inserts(self, rows: Sequence[Row]) -> None:
        """Learn what is stored under the unique keys of `rows`, and the rows those entries name."""
        if self.assume_absent:
            return
        addresses: list[Address] = []
        for key, row in zip(self._row_keys(rows), rows):
            breathe()
            addresses.append((self._shard_of(key), key))
            addresses += (self._address(entry) for entry in self._writer.entries(row, key) if entry.unique)
        await self._prefetch(addresses)
        prefix = self._writer.row_prefix
        named = []
        for address in addresses:
            breathe()
            stored = self._known.get(address)
            if stored is not None and not address[1].startswith(prefix):
                key = prefix + stored[1]
                named.append((self._shard_of(key), key))
        await self._prefetch(named)

    async def prefetch_updates(self, changes: Iterable[tuple[Found, Row, Row]]) -> None:
        addresses: list[Address] = []
        for (key, _, _), old, new in changes:
            breathe()
            new_key = self._writer.row_key(new)
            if new_key != key:
                addresses.append((self._shard_of(new_key), new_key))
            _, come = self._writer.changed_entries(old, key, new, new_key)
            addresses += (self._address(entry) for entry in come if entry.unique)
        await self._prefetch(addresses)

    async def _prefetch(self, addresses: list[Address]) -> None:
        unknown: dict[Address, None] = {}
        for address in addresses:
            breathe()
            if address not in self._known and self.transaction.pending(address) is None:
                unknown[address] = None
        wanted, transaction = list(unknown), self.transaction
        if transaction.locking:
            sort_rows(wanted, lambda address: address)  # as everybody locks them
        for first in range(0, len(wanted), READ_AT_ONCE):
            some = wanted[first : first + READ_AT_ONCE]
            if transaction.locking:
                self._known.update(zip(some, await transaction.get_locked(some, EXCLUSIVE)))
            else:
                self._known.update(zip(some, await transaction.store.get(some)))
            breathe()

    def _row_keys(self, rows: Sequence[Row]) -> Iterator[bytes]:
        for part in parts(rows):
            yield from self._writer.row_keys(part)

    async def read(self, address: Address) -> Stored | None:
        pending = self.transaction.pending(address)
        if pending is not None:
            return None if pending[1] is None else (OWN, pending[1])
        if address in self._known:
            return self._known[address]
        if self.assume_absent:
            return None
        await self._prefetch([address])
        return self._known[address]

    async def read_row(self, key: bytes) -> Found | None:
        stored = await self.read((self._shard_of(key), key))
        return None if stored is None else (key, stored[0], stored[1])

    def decode(self, found: Found) -> Row:
        return self._writer.decode(found[2])

    # Writes

    async def insert(self, row: Row) -> Duplicate | None:
        """Add a row, unless it has a key that another row has."""
        writer = self._writer
        key = writer.row_key(row)
        address = (self._shard_of(key), key)
        if await self.read(address) is not None:
            return Duplicate(self.table.primary_key, key)
        entries = [(self._address(entry), entry) for entry in writer.entries(row, key)]
        for entry_address, entry in entries:
            if entry.unique:
                stored = await self.read(entry_address)
                if stored is not None:
                    return Duplicate(self._indexes[entry.index_id], writer.row_prefix + stored[1])
        self.transaction.put_row(self.table.id, address, ABSENT, writer.encode(row))
        for entry_address, entry in entries:
            self.transaction.put(entry_address, ABSENT if entry.unique else ANY, entry.value)
        return None

    async def update(self, found: Found, old: Row, new: Row) -> Duplicate | None:
        """Put `new` in the place of the row that was found, unless another row has one of its keys."""
        writer = self._writer
        key, version, _ = found
        new_key = writer.row_key(new)
        primary_key = key[len(writer.row_prefix) :]
        new_address = (self._shard_of(new_key), new_key)
        if new_key != key and await self.read(new_address) is not None:
            return Duplicate(self.table.primary_key, new_key)
        gone, come = writer.changed_entries(old, key, new, new_key)
        for entry in come:
            if entry.unique:
                stored = await self.read(self._address(entry))
                if stored is not None and stored[1] != primary_key:
                    return Duplicate(self._indexes[entry.index_id], writer.row_prefix + stored[1])
        put, put_row = self.transaction.put, self.transaction.put_row
        if new_key != key:
            put_row(self.table.id, (self._shard_of(key), key), version, None)
            version = ABSENT
        put_row(self.table.id, new_address, version, writer.encode(new))
        for entry in gone:
            put(self._address(entry), ANY, None)
        for entry in come:
            address = self._address(entry)
            stored = await self.read(address) if entry.unique else None
            put(address, ABSENT if entry.unique and stored is None else ANY, entry.value)
        return None

    def delete(self, found: Found, row: Row) -> None:
        key, version, _ = found
        self.transaction.put_row(self.table.id, (self._shard_of(key), key), version, None)
        for entry in self._writer.entries(row, key):
            self.transaction.put(self._address(entry), ANY, None)

    def _address(self, entry: Entry) -> Address:
        return self._shard_of(entry.route), entry.key
