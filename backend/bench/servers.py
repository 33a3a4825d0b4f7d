"""Servers to measure, each a process tree of its own whose processor time can be told.

What is not installed is None, for the benchmark to say so and to go on with the others.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

READY = re.compile(r"millrace ready  mysql://root@[\d.]+:(\d+)")
HTTP = re.compile(r"http://[\d.]+:(\d+)")
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    port: int
    pid: int
    http_port: int = 0

    def cpu_s(self) -> float:
        """Processor time that the server has used until now, with all processes it has started."""
        return sum(processor_s(each) for each in self.processes())

    def processes(self) -> list[psutil.Process]:
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]


def processor_s(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


@contextmanager
def millrace(data: Path, *options: str, environment: Mapping[str, str] | None = None) -> Iterator[MeasuredServer]:
    """`millrace serve`: the command itself."""
    command = [sys.executable, "-m", "backend.cli", "serve", f"--data={data}", "--mysql-port=0", "--http-port=0"]
    log = data.parent / f"{data.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options], stdout=output, stderr=output, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while (ready := READY.search(log.read_text())) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                ends = [f"{each.name}: {each.read_text()[-1000:]}" for each in data.glob("logs/*.*")]
                raise RuntimeError("\n".join(["millrace did not start", log.read_text(), *ends]))
            time.sleep(0.1)
        http = HTTP.search(log.read_text())
        yield MeasuredServer(int(ready[1]), process.pid, 0 if http is None else int(http[1]))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_TIMEOUT_S)


@contextmanager
def memcached() -> Iterator[MeasuredServer | None]:
    with _listening("memcached", "-l", "127.0.0.1", "-m", "1024", "-u", "nobody", "-p") as server:
        yield server


@contextmanager
def redis() -> Iterator[MeasuredServer | None]:
    """Nothing is saved to disk, as with memcached."""
    with _listening("redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port") as server:
        yield server


@contextmanager
def _listening(program: str, *options: str) -> Iterator[MeasuredServer | None]:
    """`program` with its options, the last of which is for the port."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        yield None
        return
    port = free_port()
    process = subprocess.Popen([found, *options, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{program} did not start")
            time.sleep(0.02)
        yield MeasuredServer(port, process.pid)
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
