"""CHECK TABLE: every row of a table and every entry of its indexes is read, as of one epoch, and compared.

Reading verifies checksums, decoding that a row is one. Each row must have its entry in each index; if an index
has as many entries as rows then, none of them names a row that is not there. Others' statements get
their turn after every slice of rows.
"""

from __future__ import annotations

import asyncio

from backend.clustering.store import Store
from dataflow.errors import CorruptState
from dataflow.schema import Table
from persistence.key_range import after_prefix
from persistence.layout import IndexWriter, TableWriter

SLICE_ROWS = 200
Chunk = list[tuple[bytes, int, bytes]]


async def check_table(store: Store, table: Table) -> list[str]:
    """What is wrong with the table, in words; nothing if nothing is."""
    epoch = await store.hold_epoch()
    try:
        return await _Check(store, table, epoch).run()
    finally:
        store.release_epoch(epoch)


class _Check:
    def __init__(self, store: Store, table: Table, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._writer = TableWriter(table)
        self._names = {index.id: index.name for index in table.indexes}
        self._indexes = [each for each in self._writer.indexes if not each.index.building]
        self._missing = dict.fromkeys(self._names, 0)
        self._rows = 0

    async def run(self) -> list[str]:
        prefix = self._writer.row_prefix
        wrong: list[str] = []
        for shard in range(self._store.shard_count):
            try:
                async for chunk in self._store.scan(shard, prefix, after_prefix(prefix), epoch=self._epoch):
                    for first in range(0, len(chunk), SLICE_ROWS):
                        await self._check_rows(chunk[first : first + SLICE_ROWS])
            except CorruptState as error:
                wrong.append(f"Shard {shard}: {error.arguments[0]}")
        if wrong:
            return wrong  # without all rows, entries that have none say nothing
        for index in self._indexes:
            wrong += await self._check_index(index)
        return wrong

    async def _check_rows(self, rows: Chunk) -> None:
        """Decode the rows, and find their entries."""
        self._rows += len(rows)
        decode, shard_of = self._writer.decode, self._store.shard_of
        decoded = [(decode(value), key) for key, _, value in rows]
        for index in self._indexes:
            entries = [index.entry(row, key) for row, key in decoded]
            found = await self._store.get([(shard_of(each.route), each.key) for each in entries], self._epoch)
            self._missing[index.index.id] += sum(
                stored is None or stored[1] != entry.value for entry, stored in zip(entries, found)
            )
        await asyncio.sleep(0)

    async def _check_index(self, index: IndexWriter) -> list[str]:
        name, missing, count = self._names[index.index.id], self._missing[index.index.id], 0
        for prefix in (index.prefix, index.unique_prefix):
            for shard in range(self._store.shard_count):
                try:
                    async for chunk in self._store.scan(shard, prefix, after_prefix(prefix), epoch=self._epoch):
                        count += len(chunk)
                except CorruptState as error:
                    return [f"Index '{name}', shard {shard}: {error.arguments[0]}"]
        wrong = []
        if missing:
            wrong.append(f"Index '{name}' lacks the entries of {missing} rows.")
        if count != self._rows:
            wrong.append(f"Index '{name}' contains {count} entries, should be {self._rows}.")
        return wrong
