"""Removing what dropped tables left behind.

Ids are never used again, so leftovers do no harm but take space. They are found by what is
stored, not by what was dropped, so a sweep that a crash interrupted is simply done again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from persistence.key_range import after_prefix
from persistence.layout import KINDS, fence, table_ranges
from persistence.shard_store import ShardStore


def stored_tables(store: ShardStore) -> set[int]:
    """The ids of all tables that have rows or entries in the store."""
    found: set[int] = set()
    for kind in KINDS:
        key = store.first_key(kind, fence(kind))
        while key is not None:
            prefix = key[:5]
            found.add(int.from_bytes(prefix[1:], "big"))
            key = store.first_key(after_prefix(prefix), fence(kind))
    return found


def sweep(store: ShardStore, tables: Container[int], next_table_id: int) -> Iterator[None]:
    """Delete what is stored for tables not in `tables`, in slices; pauses after each. In any thread, one slice at a time.

    `next_table_id` is the first id that was never used when `tables` were all there were;
    what is stored from there on is younger than that and left alone.
    """
    for table_id in sorted(stored_tables(store)):
        if table_id in tables or table_id >= next_table_id:
            continue
        for start, stop in table_ranges(table_id):
            left: bytes | None = start
            while left is not None:
                left = store.delete_range(left, stop)
                yield
