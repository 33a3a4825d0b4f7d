"""Whether many new keys are in a gap between two stored ones: one look then tells of all of them that they are absent.

So it is with rows that come in the order of their primary key, as AUTO_INCREMENT values do. LevelDB walks over deleted keys as it
looks for the next one that is there: where that takes longer than to ask for each key, it is not tried again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import thread_time

KEYS_MIN = 16
"""Fewer than these are asked for one by one in the same time."""
LOOK_S_MIN, LOOK_S_PER_KEY = 2e-4, 2e-6
"""Processor time from which on a look has taken long."""
SKIPPED = 100


class KeyGaps:
    def __init__(self, first_key: Callable[[bytes, bytes], bytes | None], is_overlaid: Callable[[bytes, bytes], bool]) -> None:
        """`first_key` gives the first stored key from one on and before another; `is_overlaid` tells of such that only lie over the stored ones.

        What lies over them comes to its place before it goes: so it is looked at first.
        """
        self._first_key = first_key
        self._is_overlaid = is_overlaid
        self._skips = 0

    def have(self, keys: Sequence[bytes]) -> bool:
        """Whether it is known at once that none of these keys is there, as all are in one gap."""
        if len(keys) < KEYS_MIN:
            return False
        if self._skips:
            self._skips -= 1
            return False
        start, stop = min(keys), max(keys) + b"\0"
        if self._is_overlaid(start, stop):
            return False
        started = thread_time()
        found = self._first_key(start, stop)
        if thread_time() - started > max(LOOK_S_MIN, len(keys) * LOOK_S_PER_KEY):
            self._skips = SKIPPED
        return found is None
