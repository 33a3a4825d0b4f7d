"""A supervised process: started, watched, started again when it ends, stopped in the end.

A child dies with its supervisor, however that ends, and gets no Ctrl-C of the terminal: the
supervisor alone decides when it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import psutil

from backend.processes.fork_server import Start, adopt_orphans, die_with_parent

RESTART_DELAY_S = 0.1
RESTART_DELAY_MAX_S = 5.0
STEADY_AFTER_S = 10.0

log = logging.getLogger(__name__)


class ForkServer:
    """The supervisor's side of `backend.processes.fork_server`. What that starts has this process as its parent."""

    def __init__(self, environment: Mapping[str, str], forked: tuple[int, socket.socket] | None = None) -> None:
        """`forked` is one that there is already (`fork_early`)."""
        self._environment = dict(environment)
        self._process: psutil.Process | psutil.Popen | None = None
        self._channel: socket.socket | None = None
        self._busy = asyncio.Lock()
        if forked is not None:
            adopt_orphans()
            self._process, self._channel = psutil.Process(forked[0]), forked[1]

    async def start(self, start: Start) -> int:
        """The number of the new process. Raises OSError."""
        async with self._busy:
            request = msgspec.json.encode(msgspec.structs.replace(start, environment=self._environment))
            if self._process is None:
                self._begin()
            try:
                return await asyncio.to_thread(self._ask, request)
            except ConnectionError:  # it has been killed
                self._begin()
                return await asyncio.to_thread(self._ask, request)

    def _begin(self) -> None:
        """In the thread that lives as long as this process: a child dies with the thread that made it."""
        self.close()
        adopt_orphans()
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = psutil.Popen(
                [sys.executable, "-m", "backend.processes.fork_server", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                env=dict(self._environment),
                pass_fds=[other.fileno()],
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def _ask(self, request: bytes) -> int:
        assert self._channel is not None
        self._channel.send(request)
        answer = self._channel.recv(20)
        if not answer:
            raise ConnectionResetError("the fork server has ended")
        return int(answer)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._process.kill()
                self._process.wait()


class Child:
    """One process and its successors. `restarts` counts how often it had to be started again."""

    def __init__(self, start: Start, fork_server: ForkServer) -> None:
        self.name = start.name
        self.restarts = 0
        self.log_path = Path(start.output)
        self._start = start
        self._fork_server = fork_server
        self._process = 0
        self.former: set[int] = set()
        """The processes that have ended."""
        self._ended: asyncio.Future[int] | None = None
        """The exit code of the process."""
        self._task: asyncio.Task[None] | None = None
        self._spawning: asyncio.Future[None] | None = None
        self._stopping = False

    @property
    def process_id(self) -> int | None:
        return self._process if self._ended is not None and not self._ended.done() else None

    async def start(self) -> None:
        await self._spawn()
        self._task = asyncio.ensure_future(self._watch())

    async def stop(self, timeout_s: float) -> None:
        """SIGTERM, and SIGKILL to all of its process group when that took too long."""
        self._stopping = True
        if self._spawning is not None:
            await asyncio.wait([self._spawning])
        if self._ended is not None:
            if not self._ended.done():
                os.kill(self._process, signal.SIGTERM)
                await asyncio.wait([self._ended], timeout=timeout_s)
                if not self._ended.done():
                    log.warning("%s did not stop within %.0f s; killed", self.name, timeout_s)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process, signal.SIGKILL)
            await asyncio.wait([self._ended])
        if self._task is not None:
            self._task.cancel()

    async def _spawn(self) -> None:
        # To cancel it half-way would leave a process that nobody knows of.
        self._spawning = asyncio.ensure_future(self._create())
        await asyncio.shield(self._spawning)

    async def _create(self) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._process = await self._fork_server.start(self._start)
        self._ended = _end_of(self._process)
        log.info("%s started as process %d", self.name, self._process)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        delay_s = RESTART_DELAY_S
        while not self._stopping:
            since = loop.time()
            assert self._ended is not None
            code = await asyncio.shield(self._ended)
            if self._stopping:
                return
            # What it started may outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process, signal.SIGKILL)
            delay_s = (
                RESTART_DELAY_S
                if loop.time() - since > STEADY_AFTER_S
                else min(delay_s * 2, RESTART_DELAY_MAX_S)
            )
            log.warning("%s ended with code %d; started again in %.1f s", self.name, code, delay_s)
            await asyncio.sleep(delay_s)
            if not self._stopping:
                self.restarts += 1
                self.former.add(self._process)
                try:
                    await self._spawn()
                except OSError as error:
                    log.error("%s could not be started: %s", self.name, error)


def _end_of(process: int) -> asyncio.Future[int]:
    """The exit code of a child, once it has ended."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    descriptor = os.pidfd_open(process)

    def reap() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended.set_result(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

    loop.add_reader(descriptor, reap)
    return ended


def reap_orphans(children: Iterable[Child]) -> None:
    """Let go of what processes that have ended have left behind. This process has become its parent."""
    sessions = {each for child in children for each in child.former}
    for process in psutil.Process().children() if sessions else ():
        with contextlib.suppress(ProcessLookupError, ChildProcessError, psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE and os.getsid(process.pid) in sessions:
                os.waitpid(process.pid, os.WNOHANG)
