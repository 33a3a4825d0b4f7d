"""Epochs that a shard keeps readable for jobs: for whoever knows their number, not for a connection.

A job reads from many processes and through many adapters, and none of them lives as long as the job. So what it reads is kept
until it says that it is done, or nobody has read it for as long as the job asked for. There are at most `KEPT_MAX`, as an old snapshot
keeps LevelDB from dropping what was overwritten since: then the one goes first that was read longest ago, unless that was just now.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from dataflow.errors import Condition, Retryable
from persistence.view import StateView

KEPT_MAX = 128
IDLE_S = 30.0
SECONDS_MAX = 86_400.0


@dataclass(slots=True)
class _Kept:
    epoch: int
    view: StateView
    seconds: float
    read_at: float

    @property
    def until(self) -> float:
        return self.read_at + self.seconds


class KeptEpochs:
    def __init__(self) -> None:
        self._kept: dict[bytes, _Kept] = {}
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, name: bytes, epoch: int, view: StateView, seconds: float) -> None:
        if name not in self._kept and len(self._kept) >= KEPT_MAX:
            idle = min(self._kept, key=lambda each: self._kept[each].read_at)
            if self._kept[idle].read_at > self._now() - IDLE_S:
                raise Retryable(Condition.UNKNOWN_ERROR, f"{KEPT_MAX} epochs are kept for jobs already")
            del self._kept[idle]
        seconds = min(seconds, SECONDS_MAX)
        self._kept[name] = _Kept(epoch, view, seconds, self._now())
        self._set_timer()

    def forget(self, name: bytes) -> None:
        self._kept.pop(name, None)

    def find(self, epoch: int) -> StateView | None:
        """The state as of `epoch`, if it is kept; it has been read just now."""
        found = None
        for each in self._kept.values():
            if each.epoch == epoch:
                each.read_at = self._now()
                found = each.view
        return found

    def close(self) -> None:
        self._kept.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _set_timer(self) -> None:
        if self._timer is None and self._kept:
            soonest = min(each.until for each in self._kept.values())
            self._timer = asyncio.get_running_loop().call_at(soonest, self._expire)

    def _expire(self) -> None:
        self._timer, now = None, self._now()
        self._kept = {name: each for name, each in self._kept.items() if each.until > now}
        self._set_timer()
