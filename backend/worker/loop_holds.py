"""The times for which a process's event loop was held, while everybody else waited.

A beat is due every `BEAT_S`. What the loop's thread computes between two beats is at most one beat's worth of small
things and the longest of those that hold the loop. Processor time is measured, so a busy machine does not count.
"""

from __future__ import annotations

import asyncio
import time

BEAT_S = 0.02


class LoopHolds:
    def __init__(self) -> None:
        self.longest_ms = 0.0
        """The longest hold since `begin`, with up to `BEAT_S` of other things."""
        self._last_s = 0.0

    def begin(self) -> None:
        """From now on, in the thread of the event loop."""
        self._last_s = time.thread_time()
        asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        now_s = time.thread_time()
        self.longest_ms = max(self.longest_ms, 1000 * (now_s - self._last_s))
        self._last_s = now_s
        asyncio.get_running_loop().call_later(BEAT_S, self._beat)
