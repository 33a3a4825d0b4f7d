"""Where to cut a range of keys into parts of about the same size, by what LevelDB knows of its files."""

from __future__ import annotations

from persistence.shard_store import ShardStore

KEY_BYTES = 16
"""So much of a key behind what all of the range begin with tells two parts apart."""
STEPS_MAX = 24
PART_BYTES_MIN = 64 << 10


def split_keys(store: ShardStore, start: bytes, stop: bytes, parts: int) -> list[bytes]:
    """Ascending keys between `start` and `stop`; none where next to nothing is in files yet."""
    total = store.approximate_bytes(start, stop)
    parts = min(parts, max(1, total // PART_BYTES_MIN))
    view = store.view()
    first, last = (next(view.scan(start, stop, reverse=reverse), []) for reverse in (False, True))
    return _cuts(store, start, stop, parts, first[0][0], last[0][0]) if parts > 1 and first and last else []


def _cuts(store: ShardStore, start: bytes, stop: bytes, parts: int, first: bytes, last: bytes) -> list[bytes]:
    total = store.approximate_bytes(start, stop)
    prefix = _common(first, last)
    low, high = _number(first, prefix), _number(last, prefix)
    keys: list[bytes] = []
    for part in range(1, parts):
        wanted, below, above = total * part // parts, low, high
        for _ in range(STEPS_MAX):
            middle = (below + above) // 2
            if store.approximate_bytes(start, _key(middle, first[:prefix])) < wanted:
                below = middle
            else:
                above = middle
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
