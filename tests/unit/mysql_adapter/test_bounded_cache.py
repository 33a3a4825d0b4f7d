"""A cache of so many bytes keeps what is used, and never more than its limit."""

from __future__ import annotations

from random import Random

from mysql_adapter.shortcuts.bounded_cache import BoundedCache


def cache(bytes_max: int) -> BoundedCache[str, bytes]:
    return BoundedCache(bytes_max, lambda key, value: len(key) + len(value))


def test_never_holds_more_than_its_limit() -> None:
    kept, random = cache(1000), Random(5)
    keys = [f"{number:03}" for number in range(200)]
    for _ in range(5000):
        key = random.choice(keys)
        if kept.get(key) is None:
            kept.put(key, bytes(random.randrange(60)))
        held = sum(len(key) + len(value) for part in (kept.young, kept._old) for key, value in part.items())
        assert held <= 1000
    assert held > 300


def test_what_is_used_stays_while_what_is_not_goes() -> None:
    kept = cache(1000)
    kept.put("hot", b"h")
    kept.put("cold", b"c")
    for number in range(500):
        kept.put(f"k{number}", b"0123456789")
        assert kept.get("hot") == b"h"
    assert kept.get("cold") is None


def test_what_is_too_large_is_not_kept() -> None:
    kept = cache(100)
    kept.put("small", b"s")
    kept.put("large", bytes(80))
    assert kept.get("large") is None
    assert kept.get("small") == b"s"
    kept.clear()
    assert kept.get("small") is None and len(kept) == 0
