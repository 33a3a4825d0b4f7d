"""Where a table's rows and index entries are in the stores: their keys, and their shards.

| key                                        | value                | on the shard of     |
|--------------------------------------------|----------------------|---------------------|
| `r` table(4) primary key                   | the row              | the key             |
| `i` table(4) index(2) key, primary key     | the primary key      | the row's key       |
| `u` table(4) index(2) key                  | the primary key      | the key             |
| `g` table(4) index(2) key                  | nothing              | the key             |

A unique index has `u` entries, so that two rows with the same key want the same entry on the
same shard. A unique key that contains NULL collides with nothing: it has an `i` entry, and
so a unique index is read from both ranges. A `g` entry is the guard of a key that foreign
keys point at: written whenever a row comes to point at it, so that whoever takes the key
away notices (see `backend.execution.writes.references`). An index with which the primary key begins has
no entries, since the rows themselves are in its order. Numbers are big-endian; ids are never
reused, so what is left of a dropped table or index is never read as something else.

Each kind ends with a *fence*, an entry that is never deleted: LevelDB passes deleted entries one by one until it finds one that
is there, so a lookup in the newest table would pass all that was deleted from tables of the kind that follows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dataflow.schema import Index, Table, is_clustered
from dataflow.values.types import Row
from persistence.byte_lines import Array, lines
from persistence.key_encoding import KeyEncoding
from persistence.key_range import KeyRange, after_prefix
from persistence.row_encoding import RowCodec

UNSTORED_KINDS = frozenset({"FULLTEXT", "SPATIAL"})
KINDS = (b"g", b"i", b"r", b"u")


def fence(kind: bytes) -> bytes:
    """The last key of a kind; no table has that id."""
    return kind + b"\xff\xff\xff\xff"


def row_prefix(table_id: int) -> bytes:
    return b"r" + table_id.to_bytes(4, "big")


def index_prefix(table_id: int, index_id: int) -> bytes:
    return b"i" + table_id.to_bytes(4, "big") + index_id.to_bytes(2, "big")


def unique_prefix(table_id: int, index_id: int) -> bytes:
    return b"u" + table_id.to_bytes(4, "big") + index_id.to_bytes(2, "big")


def guard_prefix(table_id: int, index_id: int) -> bytes:
    return b"g" + table_id.to_bytes(4, "big") + index_id.to_bytes(2, "big")


def table_ranges(table_id: int) -> tuple[KeyRange, ...]:
    """Every key of a table: its rows, the entries of all its indexes, and the guards of its keys."""
    prefixes = [kind + table_id.to_bytes(4, "big") for kind in (b"r", b"i", b"u", b"g")]
    return tuple((prefix, after_prefix(prefix)) for prefix in prefixes)


def index_ranges(table_id: int, index_id: int) -> tuple[KeyRange, ...]:
    """Every entry of an index, and the guards of its keys."""
    prefixes = (index_prefix(table_id, index_id), unique_prefix(table_id, index_id), guard_prefix(table_id, index_id))
    return tuple((prefix, after_prefix(prefix)) for prefix in prefixes)


def auto_increment_counter(table_id: int) -> bytes:
    return b"auto_increment" + table_id.to_bytes(4, "big")


def row_id_counter(table_id: int) -> bytes:
    """The numbers of the hidden primary key."""
    return b"row_id" + table_id.to_bytes(4, "big")


def shard_of(key: bytes, shard_count: int) -> int:
    """The shard that a row's or a unique entry's key belongs to, the same for ever.

    CRC-32 spreads consecutive keys over its high bits too; multiplying takes those, and
    needs no division.
    """
    return zlib.crc32(key) * shard_count >> 32


@dataclass(frozen=True, slots=True)
class Entry:
    """An index entry. It belongs to the shard of `route`."""

    key: bytes
    value: bytes
    route: bytes
    unique: bool
    index_id: int


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """The entries of many rows in one index; or the rows themselves."""

    keys: list[bytes]
    values: list[bytes]
    routes: list[bytes]
    unique: bool


def has_entries(table: Table, index: Index) -> bool:
    return index.kind not in UNSTORED_KINDS and not is_clustered(table, index)


class IndexWriter:
    """Makes the entries of one index."""

    def __init__(self, table: Table, index: Index) -> None:
        self.index = index
        self.encoding = KeyEncoding(table, index)
        self.prefix = index_prefix(table.id, index.id)
        self.unique_prefix = unique_prefix(table.id, index.id)

    def entry(self, row: Row, row_key: bytes) -> Entry:
        key = self.encoding.encode(row)
        primary_key = row_key[ROW_PREFIX_BYTES:]
        if self.index.unique and not self.encoding.contains_null(row):
            unique_key = self.unique_prefix + key
            return Entry(unique_key, primary_key, unique_key, True, self.index.id)
        return Entry(self.prefix + key + primary_key, primary_key, row_key, False, self.index.id)

    def entries(self, rows: Sequence[Row], row_keys: list[bytes], primary_keys: list[bytes]) -> IndexEntries | None:
        """The entries of many rows; None if some of them are unique and some are not."""
        keys = self.encoding.encode_rows(rows)
        if not self.index.unique:
            prefix = self.prefix
            return IndexEntries([prefix + key + primary for key, primary in zip(keys, primary_keys)], primary_keys, row_keys, False)
        if any(map(self.encoding.contains_null, rows)):
            return None
        prefix = self.unique_prefix
        keys = [prefix + key for key in keys]
        return IndexEntries(keys, primary_keys, keys, True)

    def numbered(self, columns: Mapping[int, Array], row_keys: list[bytes], primary_keys: list[bytes]) -> IndexEntries | None:
        """As `entries`, where all keys are made of numbers that are here: int64, by position."""
        parts = self.encoding.encode_numbers(columns)
        if parts is None:
            return None
        prefix, keys = (self.unique_prefix if self.index.unique else self.prefix), lines(b"", parts)
        if self.index.unique:
            keys = [prefix + key for key in keys]
            return IndexEntries(keys, primary_keys, keys, True)
        return IndexEntries([prefix + key + primary for key, primary in zip(keys, primary_keys)], primary_keys, row_keys, False)


class TableWriter:
    """Turns rows of one version of a table into what is stored for them."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.codec = RowCodec(table)
        self.primary_key = KeyEncoding(table, table.primary_key)
        self.indexes = tuple(IndexWriter(table, index) for index in table.indexes if has_entries(table, index))
        self.row_prefix = row_prefix(table.id)
        self.encode: Callable[[Row], bytes] = self.codec.encode
        self.decode: Callable[[bytes], Row] = self.codec.decode

    def row_key(self, row: Row) -> bytes:
        return self.row_prefix + self.primary_key.encode(row)

    def row_keys(self, rows: Sequence[Row]) -> list[bytes]:
        prefix = self.row_prefix
        return [prefix + key for key in self.primary_key.encode_rows(rows)]

    def stored_rows(self, rows: Sequence[Row]) -> Iterator[tuple[bytes, bytes]]:
        """(row key, encoded row) of many rows."""
        return zip(self.row_keys(rows), self.codec.encode_rows(rows))

    def entries(self, row: Row, row_key: bytes) -> list[Entry]:
        """The row's entries in all indexes."""
        return [index.entry(row, row_key) for index in self.indexes]

    def all_entries(self, rows: Sequence[Row], row_keys: list[bytes]) -> list[IndexEntries] | None:
        """The entries of many rows, index by index; None if they have to be made one by one."""
        primary_keys = [key[ROW_PREFIX_BYTES:] for key in row_keys] if self.indexes else []
        entries = []
        for index in self.indexes:
            made = index.entries(rows, row_keys, primary_keys)
            if made is None:
                return None
            entries.append(made)
        return entries

    def numbered(self, columns: Mapping[int, Array], spread: bool = True) -> tuple[list[bytes], list[IndexEntries]] | None:
        """As `row_keys` and `all_entries`, where all keys are made of numbers that are here: int64, by position.

        Entries are in no order that matters. Unless they are `spread` over shards, they have no routes.
        """
        primary = self.primary_key.encode_numbers(columns)
        parts = [index.encoding.encode_numbers(columns) for index in self.indexes]
        if primary is None or any(part is None for part in parts):
            return None
        is_unique = any(index.index.unique for index in self.indexes)
        row_keys, primary_keys = lines(self.row_prefix, primary), lines(b"", primary) if is_unique else []
        entries = []
        for index, part in zip(self.indexes, parts):
            assert part is not None
            if index.index.unique:
                keys = lines(index.unique_prefix, part)
                entries.append(IndexEntries(keys, primary_keys, keys, True))
            else:
                # In the order of the index LevelDB finds the place of each next to that of the one before.
                order = columns[index.encoding.parts[0].position].argsort(kind="stable")
                own = primary[order]
                keys = lines(index.prefix, part[order], own)
                entries.append(IndexEntries(keys, lines(b"", own), lines(self.row_prefix, own) if spread else [], False))
        return row_keys, entries

    def changed_entries(
        self, old: Row, old_key: bytes, new: Row, new_key: bytes
    ) -> tuple[list[Entry], list[Entry]]:
        """(entries to delete, entries to put) when `new` takes the place of `old`.

        What both have in common stays as it is. A unique entry whose key stays but which names
        another primary key is only put: it takes the place of the one that was there.
        """
        before = {entry.key: entry for entry in self.entries(old, old_key)}
        after = {entry.key: entry for entry in self.entries(new, new_key)}
        gone = [entry for key, entry in before.items() if key not in after]
        come = [entry for key, entry in after.items() if before.get(key) != entry]
        return gone, come


ROW_PREFIX_BYTES = len(row_prefix(0))
