"""Foreign keys compiled: where a child's values are found among its parent's keys, and back.

A key that is pointed at has a *guard*, an entry of its own (`persistence.layout`). Both sides
of a foreign key commit under expectations that exclude each other:

- A row that comes to point at a key expects the key to be PRESENT and writes its guard.
- Whoever takes a key away reads its guard, then looks for rows that point at it, and expects
  the guard to be unchanged at the commit.

So of a parent's delete and a child's insert one commits and the other is run again, while
children of the same parent do not disturb each other, nor do updates of the parent's other columns.
A guard goes when its key does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from backend.clustering.store import Address, Store
from controller.sql.definitions.foreign_keys import description
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import ForeignKey, Index, Table, leads_with
from dataflow.values.types import Row, Value
from persistence.key_encoding import KeyEncoding
from persistence.key_range import equal_prefix
from persistence.layout import guard_prefix, row_prefix, unique_prefix

Values = tuple[Value, ...]


class Reference:
    """One foreign key. `parent` is None if the table it points at does not exist."""

    def __init__(self, child: Table, key: ForeignKey, parent: Table | None) -> None:
        self.child = child
        self.key = key
        self.parent = parent
        self.child_positions = positions_of(child, key.columns)
        self.child_index = leading_index(child, key.columns)
        self.parent_index = None if parent is None else leading_index(parent, key.parent_columns)
        if parent is not None and self.parent_index is not None:
            index = self.parent_index
            self.parent_positions = positions_of(parent, key.parent_columns)
            self._encoding = KeyEncoding(parent, index)
            self._guard_prefix = guard_prefix(parent.id, index.id)
            is_primary = index is parent.primary_key
            self._target_prefix = row_prefix(parent.id) if is_primary else unique_prefix(parent.id, index.id)
            self.names_one_row = index.unique and len(index.parts) == len(key.columns)

    def child_values(self, row: Row) -> Values | None:
        """What the row points at; None if nothing, because part of it is NULL."""
        values = tuple([row[position] for position in self.child_positions])
        return None if None in values else values

    def child_key(self, row: Row) -> bytes | None:
        values = self.child_values(row)
        return None if values is None else self.encoded(values)

    def parent_values(self, row: Row) -> Values:
        return tuple([row[position] for position in self.parent_positions])

    def parent_key(self, row: Row) -> bytes | None:
        values = self.parent_values(row)
        return None if None in values else self.encoded(values)

    def encoded(self, values: Values) -> bytes | None:
        """The key as bytes, equal for values that are equal to the parent; None if it can hold none such."""
        return equal_prefix(self._encoding, b"", values)

    def target(self, store: Store, key: bytes) -> Address:
        """What is there if and only if the parent is (if `names_one_row`)."""
        return store.shard_of(self._target_prefix + key), self._target_prefix + key

    def guard(self, store: Store, key: bytes) -> Address:
        """The guard is where its parent's entry is: one shard checks both."""
        return store.shard_of(self._target_prefix + key), self._guard_prefix + key

    def no_parent(self) -> InvalidStatement:
        return InvalidStatement(Condition.NO_REFERENCED_ROW, self._description)

    def has_children(self) -> InvalidStatement:
        return InvalidStatement(Condition.ROW_IS_REFERENCED, self._description)

    @cached_property
    def _description(self) -> str:
        return description(self.child, self.key)


class References:
    """The foreign keys among `tables`: those of a statement's table, and all that a change may cascade to."""

    def __init__(self, tables: Sequence[Table]) -> None:
        names = {(table.database, table.name): table for table in tables}
        self._tables = {table.id: table for table in tables}
        self._parents: dict[int, list[Reference]] = {table.id: [] for table in tables}
        self._children: dict[int, list[Reference]] = {table.id: [] for table in tables}
        for table in tables:
            for key in table.foreign_keys:
                parent = names.get((key.parent_database, key.parent_table))
                reference = Reference(table, key, parent)
                self._parents[table.id].append(reference)
                if parent is not None:
                    self._children[parent.id].append(reference)

    def table(self, table_id: int) -> Table:
        return self._tables[table_id]

    def of(self, table: Table) -> list[Reference]:
        """Where the table's rows point."""
        return self._parents[table.id]

    def to(self, table: Table) -> list[Reference]:
        """What points at the table's rows."""
        return self._children[table.id]


def positions_of(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    places = {column.name.lower(): position for position, column in enumerate(table.columns)}
    return tuple([places[name.lower()] for name in names])


def leading_index(table: Table, names: Sequence[str]) -> Index | None:
    """An index to find rows by these columns with: the primary key, one that is unique, or any other."""
    wanted = [table.columns[position].id for position in positions_of(table, names)]
    found = [
        index
        for index in (table.primary_key, *table.indexes)
        if not index.building and leads_with(index, wanted)
    ]
    exact = [index for index in found if index.unique and len(index.parts) == len(wanted)]
    return next(iter(exact or found), None)
