"""Processes of a cluster, started by the fork server: in a supervisor of their own, as it takes in orphans for the rest of its life."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from backend.processes.child import Child, ForkServer, reap_orphans
from backend.processes.fork_server import Start, fork_early

Scenario = Callable[[ForkServer, str], Awaitable[None]]


async def restarted(fork_server: ForkServer, output: str) -> None:
    """A child that is killed is started again, and nothing that it has started is left."""
    child = Child(Start("sleeper", "", ["sh", "-c", "sleep 1000 & wait"], output), fork_server)
    await child.start()
    first = child.process_id
    assert first is not None and psutil.Process(first).ppid() == os.getpid()
    while not psutil.Process(first).children():
        await asyncio.sleep(0)
    os.kill(first, signal.SIGKILL)
    while child.restarts == 0 or child.process_id is None:
        await asyncio.sleep(0)
    assert child.process_id != first
    while [each for each in psutil.Process().children() if os.getsid(each.pid) == first]:
        reap_orphans([child])
    await child.stop(1.0)
    assert child.process_id is None


async def forked_again(fork_server: ForkServer, output: str) -> None:
    """Children live on without the fork server, and another one starts the next."""
    one = Child(Start("one", "", ["sleep", "1000"], output), fork_server)
    await one.start()
    # The child has the fork server's command line until it runs its own program.
    [process] = [each for each in psutil.Process().children() if each.pid != one.process_id and "fork" in " ".join(each.cmdline())]
    process.kill()
    other = Child(Start("other", "", ["sleep", "1000"], output), fork_server)
    await other.start()
    assert one.process_id is not None and one.restarts == 0 and other.process_id is not None
    await asyncio.gather(one.stop(1.0), other.stop(1.0))


async def module(fork_server: ForkServer, output: str) -> None:
    """What a module writes, and how it fails, stands in the file of its output."""
    child = Child(Start("missing", "backend.processes.missing", [], output), fork_server)
    await child.start()
    while child.restarts == 0:
        await asyncio.sleep(0)
    await child.stop(1.0)
    assert "No module named 'backend.processes.missing'" in Path(output).read_text()


async def abandoned(fork_server: ForkServer, output: str) -> None:
    """Says who its child is, and is killed."""
    child = Child(Start("sleeper", "", ["sleep", "1000"], output), fork_server)
    await child.start()
    print(child.process_id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


async def _supervise(scenario: Scenario, output: str, forked: tuple[int, socket.socket] | None) -> None:
    fork_server = ForkServer(os.environ, forked)
    await scenario(fork_server, output)
    fork_server.close()


@pytest.mark.parametrize("is_early", [False, True], ids=["", "early"])
@pytest.mark.parametrize("scenario", [restarted, forked_again, module])
def test_children_of_a_supervisor(scenario: Scenario, is_early: bool, tmp_path: Path) -> None:
    done = _run(scenario, tmp_path, is_early)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("is_early", [False, True], ids=["", "early"])
def test_children_die_with_their_supervisor(is_early: bool, tmp_path: Path) -> None:
    done = _run(abandoned, tmp_path, is_early)
    assert done.returncode == -signal.SIGKILL
    process = int(done.stdout)
    if psutil.pid_exists(process):
        psutil.Process(process).wait(10)


def _run(scenario: Scenario, folder: Path, is_early: bool) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", __name__, scenario.__name__, str(folder / "output"), *(["early"] if is_early else [])]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


if __name__ == "__main__":
    asyncio.run(_supervise(globals()[sys.argv[1]], sys.argv[2], fork_early() if "early" in sys.argv else None))
