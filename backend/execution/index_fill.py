"""The entries of rows that were stored before their index was made.

Every write maintains the index already. So an entry is added only if its row is still what was read: neighbours are read as of one epoch,
their entries made column at a time, and committed together on the condition that none of these rows has changed since. Where one has, or
an entry is already there, the rows are looked at one by one. To add an entry again does no harm.
"""

from __future__ import annotations

import asyncio

from backend.clustering.store import ABSENT, ANY, CommitPart, Committed, Conflict, Locked, Store
from backend.execution.evaluation.reading import Found
from backend.execution.writes.bulk_insert import puts_of
from backend.execution.writes.duplicates import duplicate_entry
from controller.sql.locking import WAIT
from dataflow.columns.vector import NumberVector, is_number
from dataflow.errors import Condition, Retryable
from dataflow.schema import Index, Table
from dataflow.values.types import Kind
from persistence.columnar import ColumnDecoder
from persistence.key_range import after_prefix
from persistence.layout import ROW_PREFIX_BYTES, IndexEntries, IndexWriter, TableWriter

BATCH_ROWS = 400
TRIES_MAX = 100
SHARD_TRIES_MAX = 10
LOCK_TIMEOUT_S = 3600.0


async def fill_index(store: Store, table: Table, index: Index) -> None:
    """Add the entries of all stored rows; 1062 if two rows have the same key of a unique index."""
    fill = IndexFill(store, table, index)
    start = fill.writer.row_prefix
    for shard in range(store.shard_count):
        await fill.fill_shard(shard, start, after_prefix(start))


class IndexFill:
    def __init__(self, store: Store, table: Table, index: Index) -> None:
        self.store = store
        self.table = table
        self.index = index
        self.writer = TableWriter(table)
        self.entries = IndexWriter(table, index)
        parts = self.entries.encoding.parts
        is_numbers = all(is_number(part.type) and part.type.kind is not Kind.DECIMAL and not part.type.unsigned for part in parts)
        self._decoder = ColumnDecoder(table, [part.position for part in parts]) if is_numbers else None

    async def fill_shard(self, shard: int, start: bytes, stop: bytes) -> int:
        """Add the entries of one shard's rows in the range, going on where it stopped when the shard was away; how many rows these are."""
        count = tries = 0
        while True:
            try:
                epoch = await self.store.hold_epoch()
                try:
                    async for chunk in self.store.scan(shard, start, stop, epoch=epoch):
                        is_current = await self.add_all(shard, chunk, epoch)
                        if not is_current:
                            for first in range(0, len(chunk), BATCH_ROWS):
                                await self.add(chunk[first : first + BATCH_ROWS])
                        start = chunk[-1][0] + b"\0"
                        count, tries = count + len(chunk), 0
                        if not is_current:
                            break
                    else:
                        return count
                finally:
                    self.store.release_epoch(epoch)
            except Retryable:
                tries += 1
                if tries == SHARD_TRIES_MAX:
                    raise Retryable(Condition.LOCK_WAIT_TIMEOUT) from None
                await asyncio.sleep(min(0.1 * 2**tries, 2.0))

    async def add_all(self, shard: int, rows: list[Found], epoch: int) -> bool:
        """Commit the entries of neighbours that were read as of the epoch; False, and nothing is done, if they are to be looked at one by one."""
        keys = [key for key, _, _ in rows]
        entries = self._entries(keys, [value for _, _, value in rows])
        if entries is None or (entries.unique and len(set(entries.keys)) < len(entries.keys)):
            return False
        parts = {shard: CommitPart([], [], unchanged=[(keys[0], keys[-1] + b"\0", epoch)])}
        for target, puts in puts_of(self.store, entries, ABSENT if entries.unique else ANY).items():
            parts.setdefault(target, CommitPart([], [])).puts.append(puts)
        return isinstance(await self.store.commit(parts, {self.table.id: self.table.version}), Committed)

    def _entries(self, keys: list[bytes], values: list[bytes]) -> IndexEntries | None:
        primary_keys = [key[ROW_PREFIX_BYTES:] for key in keys]
        if self._decoder is not None:
            vectors = self._decoder.vectors(values, 0)
            if all(isinstance(each, NumberVector) and each.missing is None for each in vectors):
                numbers = {part.position: each.values for part, each in zip(self.entries.encoding.parts, vectors)}
                return self.entries.numbered(numbers, keys, primary_keys)
        return self.entries.entries(self.writer.codec.decode_rows(values), keys, primary_keys)

    async def add(self, rows: list[Found]) -> None:
        """Commit the rows' entries, reading them again as often as someone changes them meanwhile."""
        present: set[bytes] = set()
        for _ in range(TRIES_MAX):
            parts = self._parts(rows, present)
            if not parts:
                return
            result = await self.store.commit(parts, {self.table.id: self.table.version})
            if isinstance(result, Committed):
                return
            if isinstance(result, Locked):
                await self._wait(result)
            elif not isinstance(result, Conflict):
                break
            rows, present = await self._read_again(rows)
        raise Retryable(Condition.LOCK_WAIT_TIMEOUT)

    async def _wait(self, locked: Locked) -> None:
        """Until a transaction that has locked the row is over."""
        owner = self.store.lock_owner()
        try:
            await self.store.lock(owner, [(locked.shard, locked.key)], True, WAIT, LOCK_TIMEOUT_S)
        finally:
            self.store.unlock(owner, [locked.shard])

    def _parts(self, rows: list[Found], present: set[bytes]) -> dict[int, CommitPart]:
        parts: dict[int, CommitPart] = {}
        shard_of = self.store.shard_of
        mine: dict[bytes, bytes] = {}
        for key, version, value in rows:
            row = self.writer.decode(value)
            entry = self.entries.entry(row, key)
            if mine.setdefault(entry.key, entry.value) != entry.value:
                raise duplicate_entry(self.table, self.index, row)
            if entry.key in present:
                continue
            shard = shard_of(entry.route)
            expected = ABSENT if entry.unique else ANY
            parts.setdefault(shard, CommitPart([], [])).writes.append((entry.key, expected, entry.value))
            parts.setdefault(shard_of(key), CommitPart([], [])).checks.append((key, version))
        return parts

    async def _read_again(self, rows: list[Found]) -> tuple[list[Found], set[bytes]]:
        """The rows as they are now, and the keys of those entries that are already there."""
        shard_of = self.store.shard_of
        stored = await self.store.get([(shard_of(key), key) for key, _, _ in rows])
        rows = [(key, each[0], each[1]) for (key, _, _), each in zip(rows, stored) if each is not None]
        entries = [self.entries.entry(self.writer.decode(value), key) for key, _, value in rows]
        found = await self.store.get([(shard_of(entry.route), entry.key) for entry in entries])
        present = set()
        for (_, _, value), entry, each in zip(rows, entries, found):
            if each is None:
                continue
            if each[1] != entry.value:
                raise duplicate_entry(self.table, self.index, self.writer.decode(value))
            present.add(entry.key)
        return rows, present
