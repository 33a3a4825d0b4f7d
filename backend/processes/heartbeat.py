"""Signs of life: what each process of a cluster leaves in shared memory, every second, from its event loop.

A process that is stopped, or whose event loop is held up, leaves none; `backend.processes.watchdog` ends it then, and `/health` says so.
To leave one is a store to memory: no system call, no disk that may be full or slow. A successor takes over the file
of its name, so the file also knows how often that happened, and whether it happens again and again.

Names are seen on one machine only. A worker on another one is watched by nobody but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import mmap
import os
import struct
import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

FOLDER = Path("/dev/shm")
BEAT_S = 1.0
SUPERVISOR = "supervisor"

LOOP_STARTS = 4
LOOP_S = 60.0
"""A process that has started so often within this time is in a crash loop."""

_RECORD = struct.Struct(f"<QQQd{LOOP_STARTS}d")
_START = "millrace-beat-"


@dataclass(frozen=True, slots=True)
class Sign:
    """What is known of the process that has a name; times are those of the machine's monotonic clock.

    `beaten_at` is 0 while it starts.
    """

    name: str
    process: int
    birth: int
    starts: int
    beaten_at: float
    started_at: tuple[float, ...]

    @property
    def is_alive(self) -> bool:
        return self.birth != 0 and birth(self.process) == self.birth

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self.beaten_at

    @property
    def loops(self) -> bool:
        """Whether it ends again and again."""
        oldest = self.started_at[-1]
        return oldest > 0 and time.monotonic() - oldest < LOOP_S


class Heartbeat:
    """The sign of one process: this one, or `process`. It starts now, and lives from the first `beat` on."""

    def __init__(self, secret: bytes, name: str, process: int | None = None) -> None:
        self._secret = secret
        process = process or os.getpid()
        descriptor = os.open(_path(secret, name), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, mmap.PAGESIZE)
            self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        finally:
            os.close(descriptor)
        _, _, starts, _, *started_at = _RECORD.unpack_from(self._memory)
        self._record = (process, birth(process), starts + 1)
        self._started_at = (time.monotonic(), *started_at[:-1])
        self._leave(0.0)

    def beat(self) -> None:
        self._leave(time.monotonic())

    def _leave(self, beaten_at: float) -> None:
        _RECORD.pack_into(self._memory, 0, *self._record, beaten_at, *self._started_at)

    def follow(self, silence_max_s: float) -> None:
        """Beat from the running event loop. Where nobody watches, the process ends itself after `silence_max_s`."""
        loop = asyncio.get_running_loop()
        is_watched = not silence_max_s or _path(self._secret, SUPERVISOR).exists()

        def beat() -> None:
            self.beat()
            if not is_watched:
                faulthandler.dump_traceback_later(silence_max_s, exit=True)
            loop.call_later(BEAT_S, beat)

        beat()


def signs(secret: bytes) -> dict[str, Sign]:
    """Of all processes that have left one on this machine."""
    start = _path(secret, "").name
    names = [path.name.removeprefix(start) for path in FOLDER.glob(f"{start}*")]
    return {name: sign for name in sorted(names) if (sign := read_sign(secret, name)) is not None}


def read_sign(secret: bytes, name: str) -> Sign | None:
    try:
        process, born, starts, beaten_at, *started_at = _RECORD.unpack_from(_path(secret, name).read_bytes())
    except (OSError, struct.error):
        return None
    return Sign(name, process, born, starts, beaten_at, tuple(started_at))


def remove_signs(secret: bytes) -> None:
    """Those of a cluster that is over, and of all others here whose supervisors have ended without a word."""
    for name in signs(secret):
        _path(secret, name).unlink(missing_ok=True)
    for supervisor in FOLDER.glob(f"{_START}*-{SUPERVISOR}"):
        with contextlib.suppress(OSError, struct.error):  # another user's, or gone by now
            process, born, *_ = _RECORD.unpack_from(supervisor.read_bytes())
            if birth(process) != born:
                for path in FOLDER.glob(f"{supervisor.name.removesuffix(SUPERVISOR)}*"):
                    path.unlink(missing_ok=True)


def birth(process: int) -> int:
    """When a process began, in ticks since the machine did; 0 if there is none. So a number that is used again is noticed."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return 0
    state, *fields = stat.rpartition(b")")[2].split()
    return 0 if state in b"ZX" else int(fields[18])


def _path(secret: bytes, name: str) -> Path:
    """Nobody who does not know the secret can be there first."""
    return FOLDER / f"{_START}{blake2b(secret, digest_size=8).hexdigest()}-{name}"
