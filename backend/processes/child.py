"""A supervised process: started, watched, started again when it ends, stopped in the end.

A child dies with its supervisor, however that ends, and gets no Ctrl-C of the terminal: the
supervisor alone decides when it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

RESTART_DELAY_S = 0.1
RESTART_DELAY_MAX_S = 5.0
STEADY_AFTER_S = 10.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

log = logging.getLogger(__name__)


def _die_with_parent() -> None:
    """And not with a terminal: Java and Python leave a signal alone that was ignored when they began."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Child:
    """One process and its successors. `restarts` counts how often it had to be started again."""

    def __init__(
        self, name: str, command: Sequence[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.restarts = 0
        self._command = command
        self.log_path = log_path
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._spawning: asyncio.Future[None] | None = None
        self._stopping = False

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        await self._spawn()
        self._task = asyncio.ensure_future(self._watch())

    async def stop(self, timeout_s: float) -> None:
        """SIGTERM, and SIGKILL to all of its process group when that took too long."""
        self._stopping = True
        if self._spawning is not None:
            await asyncio.wait([self._spawning])
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), timeout_s)
            except TimeoutError:
                log.warning("%s did not stop within %.0f s; killed", self.name, timeout_s)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if self._task is not None:
            self._task.cancel()

    async def _spawn(self) -> None:
        # To cancel it half-way would leave a process that nobody knows of.
        self._spawning = asyncio.ensure_future(self._create())
        await asyncio.shield(self._spawning)

    async def _create(self) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self._environment) if self._environment is not None else None,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        log.info("%s started as process %d", self.name, self._process.pid)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        delay_s = RESTART_DELAY_S
        while not self._stopping:
            assert self._process is not None
            since = loop.time()
            code = await self._process.wait()
            if self._stopping:
                return
            # What it started may outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            delay_s = (
                RESTART_DELAY_S
                if loop.time() - since > STEADY_AFTER_S
                else min(delay_s * 2, RESTART_DELAY_MAX_S)
            )
            log.warning("%s ended with code %d; started again in %.1f s", self.name, code, delay_s)
            await asyncio.sleep(delay_s)
            if not self._stopping:
                self.restarts += 1
                await self._spawn()
