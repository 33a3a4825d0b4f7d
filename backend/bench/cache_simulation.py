"""Simulated caches of a fixed number of keys: the fraction of a trace's lookups that find their key."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence


def lru_hits(trace: Sequence[int], capacity: int) -> list[bool]:
    """The key that was looked up longest ago leaves."""
    kept: OrderedDict[int, None] = OrderedDict()
    found = []
    for key in trace:
        hit = key in kept
        found.append(hit)
        if hit:
            kept.move_to_end(key)
        else:
            if len(kept) >= capacity:
                kept.popitem(last=False)
            kept[key] = None
    return found


def random_hits(trace: Sequence[int], capacity: int, seed: int = 1) -> list[bool]:
    """Any key leaves."""
    draw = random.Random(seed)
    places: dict[int, int] = {}
    kept: list[int] = []
    found = []
    for key in trace:
        hit = key in places
        found.append(hit)
        if hit:
            continue
        if len(kept) < capacity:
            places[key] = len(kept)
            kept.append(key)
        else:
            place = draw.randrange(capacity)
            del places[kept[place]]
            kept[place] = key
            places[key] = place
    return found
