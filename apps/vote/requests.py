"""Which stories are asked for, and when: keys by Zipf or evenly, arrivals by Poisson.

Story ids are 1 … N. By Zipf story k has a share of k ** -1.08, as in the paper; both kinds of
requests are streams of their own, which together are the same as one that is divided by chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ZIPF_EXPONENT = 1.08
POOL_KEYS = 1 << 20
"""So many keys are drawn once and used in turn."""

Array = np.ndarray[Any, Any]


def draw_keys(distribution: str, stories: int, seed: int, count: int = POOL_KEYS) -> Array:
    random = np.random.default_rng(seed)
    if distribution == "uniform":
        return random.integers(1, stories + 1, count)
    assert distribution == "zipf", distribution
    shares = np.cumsum(np.arange(1, stories + 1, dtype=np.float64) ** -ZIPF_EXPONENT)
    keys: Array = np.searchsorted(shares, random.random(count) * shares[-1]) + 1
    return keys


def draw_arrivals(rate: float, seconds: float, seed: int) -> Array:
    """Seconds after the start at which requests come."""
    random = np.random.default_rng(seed)
    expected = rate * seconds
    gaps = random.exponential(1 / rate, int(expected + 6 * expected**0.5 + 10))
    arrivals = np.cumsum(gaps)
    return arrivals[: np.searchsorted(arrivals, seconds)]


def distinct(keys: Array) -> Array:
    """Each of these keys once, in order; for so few, numpy's own takes five times as long, and for short numbers half as long."""
    keys = np.sort(keys.astype(np.int32))
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys[is_first].astype(np.int64)
