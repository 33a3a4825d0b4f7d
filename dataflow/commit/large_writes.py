"""The writes of a large transaction on one shard: values by key, also in the order of the keys.

It grows part by part, and no step of that takes longer than a few milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import merge

RUN_KEYS_MAX = 32_768
"""Sorted keys are merged into runs of about this many, which takes a few milliseconds."""


class LargeWrites:
    """`values` are the new values by key, None where the key is deleted. All keys of a transaction are different."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self._runs: list[list[bytes]] = []

    def add(self, pairs: Iterable[tuple[bytes, bytes | None]]) -> None:
        """One more part."""
        part = dict(pairs)
        run = sorted(key for key in part if key not in self.values)
        self.values.update(part)
        while self._runs and len(self._runs[-1]) <= len(run) and len(run) < RUN_KEYS_MAX:
            run = sorted(self._runs.pop() + run)
        if run:
            self._runs.append(run)

    def keys_between(self, start: bytes | None, stop: bytes | None, reverse: bool = False) -> Iterator[bytes]:
        """The keys from `start` to before `stop`, in order."""
        found = []
        for run in self._runs:
            low = 0 if start is None else bisect_left(run, start)
            high = len(run) if stop is None else bisect_left(run, stop)
            if low < high:
                found.append(_within(run, low, high, reverse))
        return found[0] if len(found) == 1 else merge(*found, reverse=reverse)

    def count_between(self, start: bytes, stop: bytes) -> int:
        """How many keys there are from `start` to before `stop`."""
        return sum(bisect_left(run, stop) - bisect_left(run, start) for run in self._runs)

    def shrink(self, keys_max: int) -> bool:
        """Forget so many keys; True if others are left. For who alone has it still: to free all at once takes long."""
        if self._runs:
            del self._runs[-1][-keys_max:]
            if not self._runs[-1]:
                self._runs.pop()
        for _ in range(min(keys_max, len(self.values))):
            self.values.popitem()
        return bool(self._runs or self.values)

    def chunks(self, keys_max: int) -> Iterator[list[bytes]]:
        """All keys, so many at a time, those of a chunk in order."""
        for run in self._runs:
            for first in range(0, len(run), keys_max):
                yield run[first : first + keys_max]


def _within(run: list[bytes], low: int, high: int, reverse: bool) -> Iterator[bytes]:
    return (run[place] for place in (range(high - 1, low - 1, -1) if reverse else range(low, high)))
