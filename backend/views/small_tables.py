"""Tables that are so small that a view of one is kept whole: a key that it does not have is then known to have no rows.

Of a partial view every absent key is a question to the worker, once; and absent keys hardly ever come twice. A view that has
outgrown its limit is dropped, and comes back as a partial one when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from backend.views.hosted_view import HostedView
from dataflow.plan.key_tracing import table_columns
from dataflow.plan.node import Base, Columns, Node
from persistence.table_source import TableSource

SMALL_TABLE = "its table is small"
ROWS_MAX = 2_000
BYTES_MAX = 1 << 20
GROWTH_MAX = 4
"""A view may grow to so many times the limit before it is dropped."""
BYTES_IN_MEMORY = 20
"""What a stored byte may take in a view of all rows."""


def is_too_large(
    view: tuple[Node, Columns, Columns], source: TableSource, table_bytes: int, room: Callable[[], int], shard_count: int = 1
) -> bool:
    """Whether there is no room for a view that has to keep all rows of its tables, which take so many bytes on disk.

    Both are of one shard of `shard_count`. Rows without a key are all on one of them. How many bytes of `room` there are takes long to say.
    """
    node, key, order = view
    table_bytes *= 1 if key else shard_count
    found = table_columns(node, tuple(sorted(set(key))))
    unindexed = bool(key) and found is not None and not source.is_indexed(found[0].table, tuple(sorted(found[1])))
    return (unindexed or bool(order and not key)) and table_bytes * BYTES_IN_MEMORY > room()


class SmallTables:
    """`rows_max` is 0 until somebody wants small tables to be kept whole; of several shards, it is what each may have of a table."""

    def __init__(self) -> None:
        self.rows_max = 0

    def reason(self, view: tuple[Node, Columns, Columns], source: TableSource) -> str:
        """Why the view is to be full; empty if it is not."""
        node, key, order = view
        if not self.rows_max or not key or order or not isinstance(node, Base):
            return ""
        return SMALL_TABLE if source.is_small(node.table, self.rows_max, BYTES_MAX) else ""

    def outgrown(self, views: Mapping[bytes, HostedView]) -> list[bytes]:
        """The names of views whose tables are small no more."""
        limit = GROWTH_MAX * self.rows_max
        return [name for name, hosted in views.items() if hosted.view.reason == SMALL_TABLE and len(hosted.view.arrangement.index) > limit]
