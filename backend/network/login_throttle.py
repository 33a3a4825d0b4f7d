"""Slows down who guesses passwords, as MySQL's CONNECTION_CONTROL does: over MySQL and over HTTP.

After some failures in a row of an account from a host, each further attempt waits before its password is looked at, one
second longer each time; a success ends that. The number of waiting attempts is limited, for one account and for all; further
attempts are refused unheard, so nobody gets more guesses by asking in parallel. The memory of failures is bounded: the least recent go.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from dataclasses import dataclass

FAILURES_MAX = 10_000
"""Accounts and hosts that are remembered."""
WAITING_MAX = 128
WAITING_OF_ONE_MAX = 4

Guess = tuple[str, str]
"""(user, host)"""


@dataclass(slots=True)
class Delays:
    """`threshold` failures are free, 0 for any number; then delays are between these."""

    threshold: int = 3
    min_ms: int = 1_000
    max_ms: int = 8_000


class LoginThrottle:
    def __init__(self, delays: Delays | None = None) -> None:
        self.delays = delays or Delays()
        self.delayed_count = 0
        self._failures: OrderedDict[Guess, int] = OrderedDict()
        self._waiting: Counter[Guess] = Counter()

    def delay_s(self, user: str, host: str) -> float:
        """How long the next attempt has to wait."""
        delays, failures = self.delays, self._failures.get((user, host), 0)
        if not delays.threshold or failures < delays.threshold:
            return 0.0
        return min(max((failures - delays.threshold + 1) * 1_000, delays.min_ms), delays.max_ms) / 1_000

    async def wait(self, user: str, host: str) -> bool:
        """Before the password is looked at; False if that shall not be, because too many wait already."""
        delay_s = self.delay_s(user, host)
        if not delay_s:
            return True
        name = (user, host)
        self.delayed_count += 1
        if self._waiting[name] >= WAITING_OF_ONE_MAX or self._waiting.total() >= WAITING_MAX:
            return False
        self._waiting[name] += 1
        try:
            await asyncio.sleep(delay_s)
            return True
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]

    def failed(self, user: str, host: str) -> int:
        """How often in a row that is now."""
        name = (user, host)
        count = self._failures[name] = self._failures.pop(name, 0) + 1
        if len(self._failures) > FAILURES_MAX:
            self._failures.popitem(last=False)
        return count

    def succeeded(self, user: str, host: str) -> None:
        self._failures.pop((user, host), None)
