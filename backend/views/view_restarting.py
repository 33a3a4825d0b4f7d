"""The choice of views that do not follow a large transaction, but start anew after it.

All writers wait until the views show an epoch. Where following it takes longer than they should wait, a view that
can be had again for less goes: one that is partial is empty then, and filled by whoever asks; one that is full is
filled in the background.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from backend.views.hosted_view import HostedView
from backend.views.view_filling import Fill
from dataflow.commit.large_writes import LargeWrites
from persistence.layout import table_ranges
from persistence.shard_store import ShardStore

FOLLOWED_ROWS_MAX = 10_000
"""So many written rows are followed in about a tenth of a second, each counted for every view of its table."""
ROWS_IN_ONE_GO_MAX = 4_000
"""With several workers views follow on the event loop, where nobody else is answered meanwhile: about 40 ms."""
ROWS_MIN = 1_000
"""A view with fewer changes than these follows, whatever others do."""
SIZES_SEEN = 100
"""From so many keys it is told how large a row is."""
DEARER = 4
"""A full view follows if its tables have more than so many times the rows that have changed."""


class TooManyRows(Exception):
    """All views of several workers start anew: to follow a large transaction would hold them up for too long."""


def require_few(views: Iterable[Iterable[int]], large: LargeWrites) -> None:
    """Raises TooManyRows if views of these tables cannot follow it in one go."""
    tables = [table for view in views for table in view]
    written = {table: large.count_between(*table_ranges(table)[0]) for table in tables}
    changed = sum(written[table] for table in tables)
    if changed > ROWS_IN_ONE_GO_MAX:
        raise TooManyRows(f"a transaction has changed {changed} rows of their tables, views start anew")


def restarting(
    views: Mapping[bytes, HostedView | Fill], large: LargeWrites, store: ShardStore
) -> list[bytes]:
    """The names of the views that start anew after the large transaction, of those that are there or being filled.

    Only keys are counted: to look at the rows would take as long as to follow them.
    """
    written = {table: large.count_between(*table_ranges(table)[0]) for view in views.values() for table in view.tables}
    changed = {name: sum(written[table] for table in view.tables) for name, view in views.items()}
    if sum(changed.values()) <= FOLLOWED_ROWS_MAX:
        return []
    sizes = [len(key) + len(value or b"") for key, value in islice(large.values.items(), SIZES_SEEN)]
    row_bytes = (1 + sum(sizes)) / (1 + len(sizes))
    return [
        name
        for name, view in views.items()
        if changed[name] >= ROWS_MIN
        and not (view.is_full and stored_bytes(store, view.tables) / row_bytes > DEARER * changed[name])
    ]


def stored_bytes(store: ShardStore, tables: Iterable[int]) -> int:
    """How much the rows of these tables take on disk, roughly."""
    return sum(store.approximate_bytes(*table_ranges(table)[0]) for table in tables)
