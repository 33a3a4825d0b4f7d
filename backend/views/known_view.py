"""A view as who asked for it has defined it, and the tables that it reads, as it sees them.

A view sees the rows of a table in the *layout* of the version that its definition was made for. When the table changes and all that the view
uses of it remains, the view stays as it is, keys and all: rows of the new version are decoded in its layout, where columns that are gone
have any value, and those that have come are not seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from backend.network.program_messages import AddView
from controller.catalog import decode_node, decode_table
from dataflow.plan.column_use import fits, looked_up, widened
from dataflow.plan.node import Base, Columns, Node, bases_of
from dataflow.schema import Index, Table, layout_number
from persistence.table_source import TableSource


@dataclass(frozen=True, slots=True)
class KnownView:
    """`used` are the tables that its node reads, by their layouts: each has the columns that the view knows, and the latest version heard of."""

    message: AddView
    node: Node
    used: Mapping[int, Table]

    @property
    def name(self) -> bytes:
        return self.message.view

    @property
    def names(self) -> tuple[str, ...]:
        """The named views that it reads."""
        return self.message.names

    @property
    def definition(self) -> tuple[Node, Columns, Columns]:
        """Its node, key and order."""
        return self.node, self.message.key, self.message.order

    @property
    def layouts(self) -> frozenset[int]:
        """The tables as the dataflow knows them."""
        return frozenset(self.used)

    @property
    def tables(self) -> frozenset[int]:
        """The tables by their ids."""
        return frozenset([table.id for table in self.used.values()])

    def learn(self, source: TableSource) -> None:
        """Have the tables read as the view knows them, or as another view of the same layout knows them by now."""
        for number, table in self.used.items():
            if (source.version(number) or 0) < table.version:
                source.learn(table, number)

    def is_stale(self, versions: Mapping[int, int]) -> bool:
        """Whether a table or named view is gone, or has a later version. A shard that hears late of one is no reason."""
        if not versions.keys() >= {*self.message.named}:
            return True
        return any(versions.get(table.id, table.version + 1) > table.version for table in self.used.values())

    def current(self, versions: Mapping[int, int], tables: Mapping[int, Table]) -> KnownView | None:
        """The same view over the latest versions of its tables, if these have all that it uses; None if it is stale."""
        if not self.is_stale(versions):
            return self
        narrow = decode_node(self.message.node)
        latest = {known.id: max(known, tables.get(known.id, known), key=lambda table: table.version) for known in self.used.values()}
        if not fits(narrow, latest):
            return None
        lookups, bases = looked_up(narrow, self.message.key), {base.table: base for base in bases_of(narrow)}
        used: dict[int, Table] = {}
        for number, known in self.used.items():
            table = latest[known.id]
            used[number] = seen = known if table is known else _seen(known, table)
            if not _has_indexes(known, seen, table, bases[known.id], lookups.get(known.id, ())):
                return None
        found = replace(self, used=used)
        return None if found.is_stale(versions) else found


def known_view(message: AddView) -> KnownView:
    node = decode_node(message.node)
    read = {base.table for base in bases_of(node)}
    tables = {table.id: table for table in map(decode_table, message.tables) if table.id in read}
    used = {layout_number(table): table for table in tables.values()}
    return KnownView(message, widened(node, tables, layout_number), used)


def _seen(known: Table, table: Table) -> Table:
    """The later version of a table in the layout of the known one, with indexes by which rows could be looked up there."""
    columns = {column.id: column for column in table.columns}
    before, places = _paths(known), {column.id for column in known.columns}
    usable = [index for index in table.indexes if places.issuperset([part.column_id for part in index.parts])]
    return replace(
        known,
        columns=tuple([columns.get(column.id, column) for column in known.columns]),
        indexes=tuple([index for index in usable if (paths := _paths_of(index)) and paths <= before]),
        formats=table.formats,
        version=table.version,
    )


def _has_indexes(known: Table, seen: Table, table: Table, base: Base, lookups: Collection[int]) -> bool:
    """Whether no index is gone that rows may be looked up in, and none has come that would help to find them."""
    before, after = _paths(known), _paths(seen)
    ids = base.columns or tuple([column.id for column in known.columns])
    wanted = {ids[place] for place in lookups}
    return not any(path <= {*ids} for _, path in before - after) and not any(path <= wanted for _, path in _paths(table) - before)


def _paths(table: Table) -> set[tuple[bool, frozenset[int]]]:
    """By which columns, known by their ids, rows can be looked up; and whether only where all shards' rows are."""
    key = _paths_of(replace(table.primary_key, unique=False))
    return key.union(*[_paths_of(index) for index in table.indexes])


def _paths_of(index: Index) -> set[tuple[bool, frozenset[int]]]:
    if index.kind != "BTREE" or index.building:
        return set()
    exact = list(takewhile(lambda part: part.prefix is None, index.parts))
    return {(index.unique, frozenset([part.column_id for part in exact[:length]])) for length in range(1, len(exact) + 1)}
