"""Base tables as the dataflow reads them: rows by key columns, from one shard's stored state.

A lookup goes through the primary key or an index whose leading parts are just the columns
asked for. What is read is the state as of one epoch, which `advance`
moves on, so that rows and the changes handed to the dataflow always fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from dataflow.schema import Index, Table
from dataflow.state.delta import Delta
from dataflow.values.key_values import ImpossibleKey, key_value
from dataflow.values.types import STRINGS, Kind, Row
from persistence.key_encoding import EncodedPart, KeyEncoding, escaped_bytes
from persistence.key_range import after_prefix
from persistence.layout import TableWriter, index_prefix, unique_prefix
from persistence.view import FIRST_CHUNK_ROWS, StateView

Columns = tuple[int, ...]
INEXACT_KINDS = frozenset({Kind.ENUM, Kind.SET, Kind.JSON, Kind.FLOAT, Kind.DOUBLE})
"""Kinds whose equality in the dataflow is not equality of key parts."""


class _Path:
    """One way to find rows: an index, of which the first `len(columns)` parts are given."""

    def __init__(self, table: Table, index: Index, columns: Columns) -> None:
        self.encoding = KeyEncoding(table, index)
        parts = self.encoding.parts[: len(columns)]
        self.order = [columns.index(part.position) for part in parts]
        self.is_text = [part.type.kind in STRINGS and part.type.kind is not Kind.JSON for part in parts]
        self.normal = [_normal(part) for part in parts]
        primary = index is table.primary_key
        self.prefixes = [TableWriter(table).row_prefix] if primary else [index_prefix(table.id, index.id)]
        self.resolves = not primary
        self.is_whole_row_key = primary and len(columns) == len(index.parts)
        self.entry_prefix = b""
        """Where the entry of a key without NULL is, if it can have but one."""
        if index.unique and not primary:
            unique = unique_prefix(table.id, index.id)
            is_never_null = not any(table.columns[part.position].nullable for part in self.encoding.parts)
            self.prefixes = [unique] if is_never_null else [*self.prefixes, unique]
            self.entry_prefix = unique if len(columns) == len(index.parts) else b""

    def key(self, values: Sequence[Any]) -> bytes:
        """The leading parts for `values`, texts being given as what they compare by.

        Raises ImpossibleKey where no row can have them.
        """
        parts = []
        for number, place in enumerate(self.order):
            value = values[place]
            if value is not None and self.is_text[number]:
                parts.append(escaped_bytes(self.encoding.parts[number], value))
            else:
                parts.append(self.encoding.value_encoders[number](self.normal[number](value)))
        return b"".join(parts)


def _normal(part: EncodedPart) -> Callable[[Any], Any]:
    """`key_value` of the column, which a decimal with more digits than the column has is none of."""
    normal, limit = key_value(part.type), Decimal(part.limit).scaleb(-part.type.scale)
    if part.type.kind is not Kind.DECIMAL:
        return normal

    def decimal(value: Any) -> Decimal | None:
        found: Decimal | None = normal(value)
        if found is not None and (abs(found) >= limit or found.as_tuple().exponent < -part.type.scale):  # type: ignore[operator]
            raise ImpossibleKey
        return found

    return decimal


class TableSource:
    """Implements `dataflow.runtime.graph.BaseSource` over the stored state as of one epoch."""

    def __init__(self, view: StateView | Callable[[], StateView], is_all: bool = True) -> None:
        """`is_all`: the state is that of all shards, not of one of several."""
        self._view = view
        self._is_all = is_all
        self._tables: dict[int, Table] = {}
        self._writers: dict[int, TableWriter] = {}
        self._paths: dict[tuple[int, Columns, int | None], _Path | None] = {}

    @property
    def state(self) -> StateView:
        """What is read from."""
        if not isinstance(self._view, StateView):
            self._view = self._view()
        return self._view

    def copy(self, tables: Iterable[int]) -> TableSource:
        """These tables as they are now, whatever becomes of this source."""
        copied = TableSource(self.state, self._is_all)
        for table in tables:
            copied._tables[table], copied._writers[table] = self._tables[table], self._writers[table]
        return copied

    def advance(self, view: StateView | Callable[[], StateView]) -> None:
        """Read a later state from now on; one that may not be there yet is asked for when it is needed."""
        self._view = view

    def learn(self, table: Table, number: int | None = None) -> None:
        """From now on the table that the dataflow knows by this number, or its id, is read by this definition."""
        number = table.id if number is None else number
        if self._tables.get(number) != table:
            self._tables[number] = table
            self._writers[number] = TableWriter(table)
            self._paths = {key: path for key, path in self._paths.items() if key[0] != number}

    def forget(self, table_id: int) -> None:
        if self._tables.pop(table_id, None) is not None:
            del self._writers[table_id]
            self._paths = {key: path for key, path in self._paths.items() if key[0] != table_id}

    def table(self, table_id: int) -> Table:
        return self._tables[table_id]

    def version(self, table_id: int) -> int | None:
        table = self._tables.get(table_id)
        return None if table is None else table.version

    def decoder(self, table_id: int) -> Callable[[Sequence[bytes], bytes], list[Row]]:
        """What turns stored rows of the table, by the definition that was learnt, into rows; see `RowCodec.decode_rows`."""
        return self._writers[table_id].codec.decode_rows

    def changes(self, table_id: int, rows: Sequence[bytes], start: bytes, columns: Columns | None) -> Delta:
        """Stored rows that are new, as a delta; where `columns` say what matters of a row, neighbours that are alike may be one."""
        codec = self._writers[table_id].codec
        alike = None if columns is None else codec.decode_alike(rows, start, columns)
        return [(row, 1) for row in codec.decode_rows(rows, start)] if alike is None else alike

    # --- what the dataflow asks

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return self._path(table, columns) is not None

    def scan(self, table: int) -> Iterator[Row]:
        writer = self._writers[table]
        decode = writer.decode
        for chunk in self.state.payloads(writer.row_prefix, after_prefix(writer.row_prefix)):
            for stored in chunk:
                yield decode(stored)

    def in_key_order(self, table: int, descending: bool) -> Iterator[Row]:
        """All rows in the order of the primary key."""
        writer = self._writers[table]
        decode, start = writer.decode, writer.row_prefix
        for chunk in self.state.scan(start, after_prefix(start), reverse=descending):
            for _, _, stored in chunk:
                yield decode(stored)

    def is_small(self, table: int, rows_max: int, bytes_max: int) -> bool:
        """Whether the table has no more rows and bytes than these."""
        prefix = self._writers[table].row_prefix
        for chunk in self.state.payloads(prefix, after_prefix(prefix)):
            rows_max -= len(chunk)
            bytes_max -= sum(map(len, chunk))
            if rows_max < 0 or bytes_max < 0:
                return False
        return True

    def lookup(self, table: int, columns: Columns, keys: Sequence[Any]) -> list[Iterable[Row]]:
        path = self._path(table, columns)
        assert path is not None, f"table {table} has no index on columns {columns}"
        writer = self._writers[table]
        found: list[Iterable[Row]] = [[]] * len(keys)
        state, single = self.state, len(columns) == 1
        for encoded, place in self._encoded(path, keys, single):
            if path.is_whole_row_key:
                stored = state.payload(writer.row_prefix + encoded)
                if stored is not None:
                    found[place] = [writer.decode(stored)]
            elif path.entry_prefix and (keys[place] is not None if single else None not in keys[place]):
                stored = state.named_payload(path.entry_prefix + encoded, writer.row_prefix)
                if stored is not None:
                    found[place] = [writer.decode(stored)]
            elif (few := self._few(writer, path, encoded)) is not None:
                found[place] = few
            else:
                chunks = self._chunks(writer, path, encoded)
                rows = next(chunks, [])
                for _ in path.prefixes[1:]:
                    if len(rows) < FIRST_CHUNK_ROWS:
                        rows += next(chunks, [])
                more = len(rows) >= FIRST_CHUNK_ROWS
                found[place] = chain(rows, chain.from_iterable(chunks)) if more else rows
        return found

    def members(self, table: int, columns: Columns, key: Any, column: int, members_max: int) -> list[int] | None:
        """The different integers that `column` has in the rows with this key in `columns`; None if there are too many rows.

        Where the index goes on with the column no row is read.
        """
        further = self._path(table, columns, column)
        path = further or self._path(table, columns)
        assert path is not None, f"table {table} has no index on columns {columns}"
        try:
            encoded = path.key((key,) if len(columns) == 1 else key)
        except ImpossibleKey:
            return []
        chunks: Iterator[list[Any]]
        if further is not None:
            chunks = self._following(path, encoded)
        else:
            chunks = ([row[column] for row in chunk] for chunk in self._chunks(self._writers[table], path, encoded))
        members: dict[Any, None] = {}
        left = members_max
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                return None
            members.update(dict.fromkeys(chunk))
        members.pop(None, None)
        return list(members)

    def _following(self, path: _Path, encoded: bytes) -> Iterator[list[int]]:
        """The integers in the part of an index that comes after these, but for NULL."""
        for prefix in path.prefixes:
            start = prefix + encoded
            place, bound = len(start) + 1, len(start) + 9
            for chunk in self.state.scan(start, after_prefix(start)):
                # A part is 01 (negative) or 02, and the number modulo 2⁶⁴.
                yield [
                    int.from_bytes(key[place:bound], "big") - (key[place - 1] == 1) * (1 << 64)
                    for key, _, _ in chunk
                    if key[place - 1]
                ]

    def _encoded(self, path: _Path, keys: Sequence[Any], single: bool) -> list[tuple[bytes, int]]:
        """(key as it is stored, its place) in the order in which they are stored, which is quicker to read."""
        result = []
        for place, key in enumerate(keys):
            try:
                result.append((path.key((key,) if single else key), place))
            except ImpossibleKey:
                continue
        result.sort()
        return result

    def _few(self, writer: TableWriter, path: _Path, encoded: bytes) -> list[Row] | None:
        """As `_chunks`, all at once; None if there are many."""
        view, decode = self.state, writer.decode
        resolve = writer.row_prefix if path.resolves else None
        rows: list[Row] = []
        for prefix in path.prefixes:
            start = prefix + encoded
            found = view.few_payloads(start, after_prefix(start), resolve)
            if found is None:
                return None
            rows += map(decode, found)
        return rows

    def _chunks(self, writer: TableWriter, path: _Path, encoded: bytes) -> Iterator[list[Row]]:
        """The rows of one key, as they are read."""
        view, decode = self.state, writer.decode
        resolve = writer.row_prefix if path.resolves else None
        for prefix in path.prefixes:
            start = prefix + encoded
            for chunk in view.payloads(start, after_prefix(start), resolve):
                yield [decode(stored) for stored in chunk]

    def _path(self, table_id: int, columns: Columns, then: int | None = None) -> _Path | None:
        at = (table_id, columns, then)
        if at not in self._paths:
            self._paths[at] = self._find_path(self._tables[table_id], columns, then)
        return self._paths[at]

    def _find_path(self, table: Table, columns: Columns, then: int | None) -> _Path | None:
        """By an index that begins with these columns; if `then` is given, and goes on with this one, ascending."""
        positions = {column.id: position for position, column in enumerate(table.columns)}
        if not columns:
            return None
        for index in (table.primary_key, *table.indexes):
            leading, following = index.parts[: len(columns)], index.parts[len(columns) : len(columns) + 1]
            if then is not None and not any(positions[part.column_id] == then and not part.descending for part in following):
                continue
            kinds = {table.columns[positions[part.column_id]].type.kind for part in leading}
            exact = all(part.prefix is None for part in leading) and not kinds & INEXACT_KINDS
            # A unique entry is on the shard of its own key, its row may be on another.
            local = self._is_all or not index.unique or index is table.primary_key
            readable = index.kind == "BTREE" and not index.building and local
            if exact and readable and {positions[part.column_id] for part in leading} == set(columns):
                return _Path(table, index, columns)
        return None
