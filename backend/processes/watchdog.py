"""Ends processes that have left no sign of life for too long, so that whoever started them replaces them.

Silence is counted in turns of the watchdog itself: where the whole machine stands still, it does, too. A process that
is waiting for a processor, or for the disk, is silent but not stuck, and is given more time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from backend.processes.child import Child
from backend.processes.heartbeat import Sign, signs

TURN_S = 1.0
START_S = 120.0
"""Until its first sign a child may take so long, for Spark has to start. A worker may take any time: it opens its database."""
STARVED_SHARE = 0.25
"""A process that is stuck in a computation has more of a processor than this, unless others want it as well."""
STARVED_TIMES = 4
"""How many times longer one may be silent that got less."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """A process as it was when it last gave a sign."""

    process: int
    beaten_at: float
    processor_s: float
    turns: int = 0


class Watchdog:
    """`children` of the supervisor, by name, and the workers of this machine, of which only their signs are known."""

    def __init__(self, secret: bytes, silence_max_s: float, children: Mapping[str, Child]) -> None:
        self._secret = secret
        self._silence_max_s = silence_max_s
        self._children = children
        self._watched: dict[str, _Watched] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(TURN_S)
            try:
                self.look()
            except Exception:  # the next turn may go well; without any, nobody would be replaced
                log.exception("the watchdog failed")

    def look(self) -> None:
        """One turn: end whoever has been silent for too long."""
        found = signs(self._secret)
        for name, child in self._children.items():
            if child.process_id is not None:
                self._look_at(name, child.process_id, found.get(name))
        for name, sign in found.items():
            if name.startswith("worker-") and sign.beaten_at and sign.is_alive:
                self._look_at(name, sign.process, sign)

    def _look_at(self, name: str, process: int, sign: Sign | None) -> None:
        beaten_at = sign.beaten_at if sign is not None and sign.process == process else 0.0
        watched = self._watched.get(name)
        if watched is None or (watched.process, watched.beaten_at) != (process, beaten_at):
            self._watched[name] = _Watched(process, beaten_at, _processor_s(process))
            return
        watched.turns += 1
        silent_s = watched.turns * TURN_S
        limit_s = self._silence_max_s if beaten_at else START_S
        if silent_s >= limit_s and is_stuck(process, watched.processor_s, silent_s, limit_s):
            log.error("%s (process %d) gave no sign of life for %.0f s; ended", name, process, silent_s)
            del self._watched[name]
            end(process)


def is_stuck(process: int, processor_s: float, silent_s: float, limit_s: float) -> bool:
    """Whether a silent process would stay so; `processor_s` is what it had used when its silence began."""
    try:
        state = psutil.Process(process).status()
    except psutil.NoSuchProcess:
        return False
    if state == psutil.STATUS_DISK_SLEEP:
        return False
    used_s = _processor_s(process) - processor_s
    is_starved = state == psutil.STATUS_RUNNING and used_s < silent_s * STARVED_SHARE
    return not is_starved or silent_s >= limit_s * STARVED_TIMES


def end(process: int) -> None:
    """What it has started in its group ends with it, if the group is its own."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(process) == process:
            os.killpg(process, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGKILL)


def _processor_s(process: int) -> float:
    try:
        times = psutil.Process(process).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
