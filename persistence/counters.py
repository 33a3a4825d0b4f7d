"""Numbers that are never handed out twice, whatever crashes: AUTO_INCREMENT and row ids.

A counter's stored *reserve* is a number below which anything may have been handed out. It is
made durable before a number at or above the old reserve leaves, in steps of many numbers, so
that most allocations write nothing. A crash skips the rest of a step; a clean close
stores the exact value and skips nothing. A counter stays at `NUMBER_MAX`, which nobody may use: it is used up then.
"""

from __future__ import annotations

from collections.abc import Callable

RESERVE_AHEAD = 1_000
NUMBER_MAX = (1 << 64) - 1
EPOCH_COUNTER = b"\0epoch"
"""That of the coordinator's epochs, on its shard."""


class Counters:
    """The counters of one shard, by name. `persist(name, reserve)` returns once it is durable."""

    def __init__(self, reserves: dict[bytes, int], persist: Callable[[bytes, int], None]) -> None:
        self._reserves = reserves
        self._persist = persist
        self._next = dict(reserves)

    def allocate(self, name: bytes, count: int, floor: int = 0) -> int:
        """Reserve `count` consecutive numbers ≥ max(floor, 1) never handed out; return the first.

        With count = 0 the counter is only raised: numbers below `floor` will not be handed out.
        """
        first = min(max(self._next.get(name, 1), floor), NUMBER_MAX)
        after = min(first + count, NUMBER_MAX)
        if after > self._reserves.get(name, 1):
            reserve = min(after + RESERVE_AHEAD, NUMBER_MAX)
            self._persist(name, reserve)
            self._reserves[name] = reserve
        self._next[name] = after
        return first

    def lower(self, name: bytes, expected: int, number: int) -> int:
        """Hand out `number` next, if it is `expected` now: whoever asks knows that those in between are not used."""
        if self._next.get(name, 1) == expected:
            self._persist(name, number)
            self._reserves[name] = self._next[name] = number
        return self._next.get(name, 1)

    def peek(self, name: bytes) -> int:
        """The number that would be handed out next."""
        return self._next.get(name, 1)

    def exact(self) -> dict[bytes, int]:
        """What to store on a clean close."""
        return {name: number for name, number in self._next.items() if self._reserves.get(name) != number}
