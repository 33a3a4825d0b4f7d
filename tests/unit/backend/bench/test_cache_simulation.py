"""The caches that eviction is compared with."""

from __future__ import annotations

import random

from backend.bench.cache_simulation import lru_hits, random_hits


def test_lru_forgets_what_was_looked_up_longest_ago() -> None:
    assert lru_hits([1, 2, 1, 3, 1, 2], 2) == [False, False, True, False, True, False]


def test_with_room_for_all_keys_only_first_lookups_miss() -> None:
    trace = [1, 2, 3, 1, 2, 3, 3]
    for hits in (lru_hits(trace, 3), random_hits(trace, 3)):
        assert hits == [False, False, False, True, True, True, True]


def test_random_eviction_keeps_its_capacity() -> None:
    draw = random.Random(1)
    hits = random_hits([draw.randrange(10) for _ in range(10_000)], 5)
    assert 0.45 < sum(hits) / len(hits) < 0.55
