"""A view as who asked for it has defined it, and the versions of the tables that the definition was made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.network.messages import AddView
from controller.catalog import decode_node, decode_table
from dataflow.plan.node import Columns, Node, tables_of
from dataflow.schema import Table
from persistence.table_source import TableSource


@dataclass(frozen=True, slots=True)
class KnownView:
    """`used` are the tables that its node reads, by their ids."""

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
    def tables(self) -> frozenset[int]:
        return frozenset(self.used)

    def learn(self, source: TableSource) -> None:
        """Have the tables read as the view knows them."""
        for table in self.used.values():
            source.learn(table)

    def is_stale(self, versions: Mapping[int, int]) -> bool:
        """Whether a table or named view is gone, or has a later version. A shard that hears late of one is no reason."""
        if not versions.keys() >= {*self.message.named}:
            return True
        return any(versions.get(table.id, table.version + 1) > table.version for table in self.used.values())


def known_view(message: AddView) -> KnownView:
    node = decode_node(message.node)
    used = tables_of(node)
    return KnownView(message, node, {table.id: table for table in map(decode_table, message.tables) if table.id in used})
