"""The tables that a worker's views are made of: how it reads them, and what an epoch changes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dataflow.delta import Delta
from dataflow.epoch_messages import PersistEpoch
from dataflow.types import Row
from persistence.layout import ROW_PREFIX_BYTES
from persistence.shard_store import ShardStore
from persistence.table_source import TableSource

ROW_KEY = ord("r")


class TableUse:
    def __init__(self, store: ShardStore, is_all: bool) -> None:
        """`is_all`: the store has all rows, not one of several shards'."""
        self._store = store
        self.source = TableSource(store.view(), is_all)
        self._users: dict[int, int] = {}

    def __bool__(self) -> bool:
        """Whether any table is in use."""
        return bool(self._users)

    def __iter__(self) -> Iterator[int]:
        return iter(self._users)

    def begin(self, tables: Iterable[int]) -> None:
        """One more view uses these tables, which the source has learnt."""
        for table_id in tables:
            self._users[table_id] = self._users.get(table_id, 0) + 1

    def end(self, tables: Iterable[int]) -> None:
        for table_id in tables:
            self._users[table_id] -= 1
            if not self._users[table_id]:
                del self._users[table_id]
                self.source.forget(table_id)

    def end_all(self) -> None:
        for table_id in self._users:
            self.source.forget(table_id)
        self._users.clear()

    def is_touched(self, writes: Iterable[bytes]) -> bool:
        """Whether writes to these keys change a table in use."""
        users = self._users
        return bool(users) and any(
            key[0] == ROW_KEY and int.from_bytes(key[1:5], "big") in users for key in writes
        )

    def changes(self, epoch: PersistEpoch) -> dict[int, Delta]:
        """What the writes of an epoch, which are not stored yet, change in the tables in use."""
        changes: dict[int, Delta] = {}
        if not self._users:
            return changes
        absent, get = epoch.absent, self._store.get
        tables: dict[bytes, tuple[Callable[[bytes], Row], Delta] | None] = {}
        for key, value in epoch.writes.items():
            prefix = key[:ROW_PREFIX_BYTES]
            if prefix not in tables:
                tables[prefix] = self._begin_delta(prefix, changes)
            table = tables[prefix]
            if table is None:
                continue
            decode, delta = table
            old = None if key in absent else get(key)
            if old is not None:
                delta.append((decode(old[1]), -1))
            if value is not None:
                delta.append((decode(value), 1))
        return changes

    def _begin_delta(self, prefix: bytes, changes: dict[int, Delta]) -> tuple[Callable[[bytes], Row], Delta] | None:
        """The decoder of the rows whose keys begin so, and their delta; None if they are of no table in use."""
        table_id = int.from_bytes(prefix[1:], "big")
        if prefix[0] != ROW_KEY or table_id not in self._users:
            return None
        delta = changes[table_id] = []
        return self.source.decoder(table_id), delta
