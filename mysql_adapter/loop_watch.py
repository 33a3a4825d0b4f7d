"""The longest time that the adapter's event loop was held, for SHOW STATUS.

While commands run, a timer that is due every `TICK_S` compares the processor time of the loop's thread. Processor time,
not that of a clock: a machine that is busy with other things does not count. What is shown is up to `TICK_S` too long.
"""

from __future__ import annotations

import asyncio
from time import thread_time

TICK_S = 0.005


class LoopWatch:
    def __init__(self) -> None:
        self.longest_s = 0.0
        self._running = 0
        self._last_s: float | None = None

    def begin(self) -> None:
        """A command begins."""
        self._running += 1
        if self._last_s is None:
            self._last_s = thread_time()
            asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def end(self) -> None:
        self._running -= 1

    def reset(self) -> None:
        self.longest_s = 0.0

    def _tick(self) -> None:
        assert self._last_s is not None
        now_s = thread_time()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        if self._running:
            self._last_s = now_s
            asyncio.get_running_loop().call_later(TICK_S, self._tick)
        else:
            self._last_s = None
