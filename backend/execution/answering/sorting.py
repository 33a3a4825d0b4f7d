"""Stable sorts of any number of rows that let others have their turn.

One call of `list.sort` cannot be interrupted. A long list is first dealt out to buckets between keys that a sample has
given; the buckets are short, and those of rows that are all equal need no sorting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, TypeVar

from backend.execution.pace import breathe, parts
from backend.execution.rows import drop, held

T = TypeVar("T")

SHORT = 1_000
SAMPLES_PER_BUCKET = 4


def sort_rows(rows: list[T], key: Callable[[T], Any], descending: bool = False) -> None:
    """As `rows.sort(key=key, reverse=descending)`."""
    if len(rows) <= SHORT:
        rows.sort(key=key, reverse=descending)
        breathe()
        return
    ordered = order_of(held([key(row) for row in part] for part in parts(rows)), descending)
    rows[:] = [rows[place] for part in parts(ordered) for place in part]
    drop(ordered)


def order_of(keys: list[Any], descending: bool = False) -> list[int]:
    """The places of the keys in their order; those of equal keys as they are."""
    if len(keys) <= SHORT:
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
    step = max(1, SHORT // SAMPLES_PER_BUCKET)
    splitters = list(dict.fromkeys(sorted(keys[::step])[::SAMPLES_PER_BUCKET]))
    # Bucket 2n + 1 is of the keys that equal splitter n, bucket 2n of those between it and the one before.
    buckets: list[list[int]] = [[] for _ in range(2 * len(splitters) + 1)]
    last = len(splitters)
    for part in parts(range(len(keys))):
        for place in part:
            key = keys[place]
            number = bisect_left(splitters, key)
            is_equal = number < last and splitters[number] == key
            buckets[2 * number + is_equal].append(place)
    ordered: list[int] = []
    for number in reversed(range(len(buckets))) if descending else range(len(buckets)):
        bucket = buckets[number]
        if not number & 1:
            bucket.sort(key=keys.__getitem__, reverse=descending)
        ordered += bucket
        breathe()
    return ordered
