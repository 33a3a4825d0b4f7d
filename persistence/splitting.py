"""The size of a range of keys, and cuts into parts of about the same size, from LevelDB's knowledge of its files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from persistence.shard_store import ShardStore
from persistence.view import VERSION_BYTES

KEY_BYTES = 16
"""So much of a key behind what all of the range begin with tells two parts apart."""
STEPS_MAX = 24
PART_BYTES_MIN = 64 << 10
ROWS_MIN = 2048
"""Fewer rows than this that are not in files yet are one part."""


def split_keys(store: ShardStore, start: bytes, stop: bytes, parts: int) -> list[bytes]:
    """Ascending keys between `start` and `stop`; none where next to nothing is stored."""
    total = store.approximate_bytes(start, stop)
    if total >= 2 * PART_BYTES_MIN:
        parts = min(parts, total // PART_BYTES_MIN)
    elif parts > 1 and len(list(islice(_rows(store, start, stop), ROWS_MIN))) < ROWS_MIN:
        return []
    view = store.view()
    first, last = (next(view.scan(start, stop, reverse=reverse), []) for reverse in (False, True))
    return _cuts(store, start, stop, parts, first[0][0], last[0][0]) if parts > 1 and first and last else []


def estimated_rows(store: ShardStore, start: bytes, stop: bytes) -> int:
    """About how many rows of the range are in files, taken to be as long as its first ones."""
    first = next(store.view().scan(start, stop), [])
    sizes = [len(key) + VERSION_BYTES + len(payload) for key, _, payload in first]
    return store.approximate_bytes(start, stop) * len(sizes) // sum(sizes) if sizes else 0


def _rows(store: ShardStore, start: bytes, stop: bytes) -> Iterator[bytes]:
    return (value for chunk in store.view().payloads(start, stop) for value in chunk)


def _cuts(store: ShardStore, start: bytes, stop: bytes, parts: int, first: bytes, last: bytes) -> list[bytes]:
    """By the sizes of files; what is not in files yet is taken to be spread evenly."""
    total = store.approximate_bytes(start, stop)
    prefix = _common(first, last)
    low, high = _number(first, prefix), _number(last, prefix)
    keys: list[bytes] = []
    for part in range(1, parts):
        wanted, below, above = total * part // parts, low, high
        for _ in range(STEPS_MAX if total >= PART_BYTES_MIN else 0):
            middle = (below + above) // 2
            if store.approximate_bytes(start, _key(middle, first[:prefix])) < wanted:
                below = middle
            else:
                above = middle
        if total < PART_BYTES_MIN:
            above = low + (high - low) * part // parts
        key = _key(above, first[:prefix])
        if (keys[-1] if keys else start) < key < stop:
            keys.append(key)
    return keys


def _common(first: bytes, last: bytes) -> int:
    same = (place for place, (a, b) in enumerate(zip(first, last)) if a != b)
    return next(same, min(len(first), len(last)))


def _number(key: bytes, prefix: int) -> int:
    return int.from_bytes(key[prefix : prefix + KEY_BYTES].ljust(KEY_BYTES, b"\0"), "big")


def _key(number: int, prefix: bytes) -> bytes:
    return prefix + number.to_bytes(KEY_BYTES, "big")
