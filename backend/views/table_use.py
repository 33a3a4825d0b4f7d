"""The tables that a worker's views are made of: how it reads them, and what an epoch changes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import Puts
from dataflow.commit.large_writes import LargeWrites
from dataflow.plan.node import Columns
from dataflow.schema import table_of_layout
from dataflow.state.delta import Delta
from persistence.layout import ROW_PREFIX_BYTES, row_prefix
from persistence.shard_store import ShardStore
from persistence.table_source import TableSource
from persistence.view import StateView, Stored

ALIKE_MIN = 64
"""Fewer rows are hardly alike."""
ROWS_AT_ONCE = 1_000
"""So many rows are decoded at a time, within which no other thread gets its turn."""


@dataclass(slots=True)
class TableChanges:
    """What an epoch changes in the tables in use. Of rows that are new, which need no look at the store, it is decoded later."""

    epoch: int = 0
    rows: dict[int, Delta] = field(default_factory=dict)
    new: list[tuple[int, Puts]] = field(default_factory=list)
    large: tuple[LargeWrites, StateView] | None = None
    """What a large transaction writes, and what was stored before. It may change tables that are not in use alone."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.new or self.large)

    @property
    def new_count(self) -> int:
        return sum([len(puts.keys) for _, puts in self.new])


class TableUse:
    def __init__(self, store: ShardStore, is_all: bool) -> None:
        """`is_all`: the store has all rows, not one of several shards'."""
        self._store = store
        self.source = TableSource(store.view(), is_all)
        self._users: dict[int, int] = {}
        """How many views use each table, by its layout (`dataflow.schema.layout_number`)."""
        self._prefixes: dict[bytes, list[int]] = {}
        """The layouts in use, by how the keys of their rows begin."""

    def __bool__(self) -> bool:
        """Whether any table is in use."""
        return bool(self._users)

    def __iter__(self) -> Iterator[int]:
        return iter(self._users)

    def begin(self, tables: Iterable[int]) -> None:
        """One more view uses these tables, which the source has learnt."""
        for table in tables:
            self._users[table] = self._users.get(table, 0) + 1
            if self._users[table] == 1:
                self._prefixes.setdefault(row_prefix(table_of_layout(table)), []).append(table)

    def end(self, tables: Iterable[int]) -> None:
        for table in tables:
            self._users[table] -= 1
            if not self._users[table]:
                prefix = row_prefix(table_of_layout(table))
                self._prefixes[prefix].remove(table)
                if not self._prefixes[prefix]:
                    del self._prefixes[prefix]
                del self._users[table]
                self.source.forget(table)

    def end_all(self) -> None:
        for table_id in self._users:
            self.source.forget(table_id)
        self._users.clear()
        self._prefixes.clear()

    def is_touched(self, writes: Iterable[bytes]) -> bool:
        """Whether writes to these keys change a table in use."""
        prefixes = self._prefixes
        return bool(prefixes) and any(key[:ROW_PREFIX_BYTES] in prefixes for key in writes)

    def changes(self, epoch: PersistEpoch, before: StateView | None = None) -> TableChanges:
        """What the writes of an epoch change in the tables in use. They are not stored yet, or `before` is the state without them."""
        changes = TableChanges(epoch.epoch)
        if not self._users:
            return changes
        absent, get = epoch.absent, (before or self._store).get
        writes = epoch.writes
        if epoch.large is not None:  # which comes after them
            large = epoch.large[1]
            changes.large = large, self._store.view()
            writes = {key: value for key, value in writes.items() if key not in large.values}
        changes.rows = self._rows(writes.items(), lambda key: None if key in absent else get(key), self._prefixes)
        for puts in epoch.new:
            changes.new += [(table, puts) for table in self._prefixes.get(puts.keys[0][:ROW_PREFIX_BYTES], ())]
        return changes

    def _rows(
        self,
        writes: Iterable[tuple[bytes, bytes | None]],
        get: Callable[[bytes], Stored | None],
        prefixes: Mapping[bytes, Sequence[int]],
    ) -> dict[int, Delta]:
        """What these writes change in each table of `prefixes`; `get` tells what was stored."""
        tables: dict[bytes, tuple[list[bytes], list[bytes]]] = {}
        for key, value in writes:
            prefix = key[:ROW_PREFIX_BYTES]
            if prefix not in prefixes:
                continue
            gone, come = tables.get(prefix) or tables.setdefault(prefix, ([], []))
            old = get(key)
            if old is not None:
                gone.append(old[1])
            if value is not None:
                come.append(value)
        rows: dict[int, Delta] = {}
        for prefix, (gone, come) in tables.items():
            for table in prefixes[prefix]:
                decode = self.source.decoder(table)
                rows[table] = [(row, -1) for row in decode(gone, b"")] + [(row, 1) for row in decode(come, b"")]
        return rows

    def deltas(
        self,
        changes: TableChanges,
        seen: Callable[[int], Columns | None] = lambda table: None,
        tables: Set[int] | None = None,
    ) -> dict[int, Delta]:
        """The changes as the dataflow takes them: of these `tables`, or of all in use.

        Rows that are alike in the columns that somebody has `seen` of their table may become one with their weight,
        unless other tables change, too: for them, these rows may have to be taken off again from what is read of their table.
        """
        wanted = self._users.keys() if tables is None else self._users.keys() & tables
        deltas = {table_id: delta for table_id, delta in changes.rows.items() if table_id in wanted}
        if changes.large is not None and wanted:
            large, before = changes.large
            prefixes: dict[bytes, list[int]] = {}
            for table in wanted:
                prefixes.setdefault(row_prefix(table_of_layout(table)), []).append(table)
            for keys in large.chunks(ROWS_AT_ONCE):
                writes = [(key, large.values[key]) for key in keys if key[:ROW_PREFIX_BYTES] in prefixes]
                for table_id, delta in self._rows(writes, before.get, prefixes).items():
                    deltas.setdefault(table_id, []).extend(delta)
        is_only = changes.large is None and len({*changes.rows, *[table_id for table_id, _ in changes.new]}) == 1
        for table_id, puts in changes.new:
            if table_id in wanted:
                columns = seen(table_id) if is_only and len(puts.values) >= ALIKE_MIN else None
                found = self.source.changes(table_id, puts.values, puts.start, columns)
                deltas[table_id] = [*deltas[table_id], *found] if table_id in deltas else found
        return deltas
