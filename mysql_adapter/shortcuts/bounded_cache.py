"""Memories with limits: a cache that forgets what was not used for longest, roughly, and a set that knows what has come before.

The cache has a limit in bytes, and two generations: what is used moves to the young one; when that has half of the bytes, it
becomes the old one, and what was left in the old one is forgotten. So a hit in `young` costs
one dictionary lookup, which callers in a hurry may do themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """`weigh` tells how many bytes an entry counts for."""

    def __init__(self, bytes_max: int, weigh: Callable[[K, V], int]) -> None:
        self._half_bytes = bytes_max // 2
        self._weigh = weigh
        self._young_bytes = 0
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        found = self.young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> None:
        size = self._weigh(key, value)
        if size > self._half_bytes:
            return
        self._young_bytes += size
        if self._young_bytes > self._half_bytes:
            self._old, self.young = self.young, {}
            self._young_bytes = size
        self.young[key] = value

    def clear(self) -> None:
        self.young.clear()
        self._old.clear()
        self._young_bytes = 0

    def __len__(self) -> int:
        """How many entries there are; those in both generations count twice."""
        return len(self.young) + len(self._old)


class Seen:
    """What has come before, as far as `count_max` of it: many things never come again, and are not worth more."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._hashes: set[int] = set()

    def is_new(self, thing: Hashable) -> bool:
        """Whether it comes for the first time."""
        number = hash(thing)
        if number in self._hashes:
            return False
        if len(self._hashes) >= self._count_max:
            self._hashes.clear()
        self._hashes.add(number)
        return True
