"""Key ranges that are known to hold nothing, so that nobody steps through what was deleted from them again.

LevelDB passes deleted entries one by one until it finds one that is there, and its iterators have no upper bound: a lookup
behind 150,000 deletions takes milliseconds, whatever it asks for. They stay until they are compacted away, which LevelDB cannot do as
long as somebody keeps an older snapshot. So a read that took long notes the range that it stepped through, a *gap*, and later reads
jump over it.

Invariants
- A gap [start, end) has no key in the state of any epoch from its `since` on: it is noted by a read of the last epoch that was begun,
  and an epoch that puts a key into it cuts it off there before it is written.
- Only its speed depends on what is noted here, never what a read finds.

Of a gap into which a key is put, the part before the key stays: rows are added at the end more often than elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from threading import Lock

GAPS_MAX = 1024

Gap = tuple[bytes, bytes, int]
"""(start, end, since)"""


class EmptiedRanges:
    """Notes of one store. Read and written from several threads; the list is replaced, never changed."""

    def __init__(self, epoch: int) -> None:
        self._lock = Lock()
        self._epoch = epoch
        self._gaps: list[Gap] = []
        """In order, none touching another."""

    def __len__(self) -> int:
        return len(self._gaps)

    def begin_epoch(self, epoch: int, keys: Iterable[Iterable[bytes]] | None) -> None:
        """`epoch` is about to be written, and puts these keys; None: so many that all notes are forgotten."""
        with self._lock:
            self._epoch = epoch
            if keys is None:
                self._gaps = []
            elif self._gaps:
                for some in keys:
                    self._cut(some)

    def note(self, start: bytes, end: bytes, epoch: int) -> None:
        """A read of `epoch` found nothing from `start` up to `end`."""
        with self._lock:
            if epoch != self._epoch or start >= end:
                return
            kept = [] if len(self._gaps) >= GAPS_MAX else self._gaps
            before = [gap for gap in kept if gap[1] < start]
            after = [gap for gap in kept if gap[0] > end]
            for gap in kept[len(before) : len(kept) - len(after)]:
                start, end = min(start, gap[0]), max(end, gap[1])
            self._gaps = [*before, (start, end, epoch), *after]

    def first(self, start: bytes, stop: bytes, epoch: int) -> Gap | None:
        """The first gap that has a part of the range, in the state of `epoch`."""
        gaps = self._gaps
        place = bisect_right(gaps, (start, b"\xff" * 8, 0))
        for number in range(max(0, place - 1), len(gaps)):
            gap = gaps[number]
            if gap[0] >= stop:
                return None
            if gap[1] > start and gap[2] <= epoch:
                return gap
        return None

    def last_start(self, start: bytes, stop: bytes, epoch: int) -> bytes:
        """Where the gap begins in which the range ends; `stop` if it ends in none."""
        gaps = self._gaps
        place = bisect_right(gaps, (stop,)) - 1
        if place >= 0 and gaps[place][0] < stop <= gaps[place][1] and gaps[place][2] <= epoch:
            return max(start, gaps[place][0])
        return stop

    def _cut(self, keys: Iterable[bytes]) -> None:
        gaps = self._gaps
        ends: dict[int, bytes] = {}
        for key in keys:
            place = bisect_right(gaps, (key, b"\xff" * 8, 0)) - 1
            if place >= 0 and key < ends.get(place, gaps[place][1]):
                ends[place] = key
        if ends:
            cut = ((gap[0], ends.get(place, gap[1]), gap[2]) for place, gap in enumerate(gaps))
            self._gaps = [gap for gap in cut if gap[0] < gap[1]]
