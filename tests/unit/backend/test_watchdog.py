"""Signs of life, and who is ended for want of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from backend.processes import watchdog
from backend.processes.health import process_problems, shard_faults
from backend.processes.heartbeat import (
    LOOP_STARTS,
    SUPERVISOR,
    Heartbeat,
    Sign,
    birth,
    read_sign,
    remove_signs,
    signs,
)
from backend.processes.watchdog import Watchdog, is_stuck

BEATING = """
import asyncio, sys
from backend.processes.heartbeat import Heartbeat

async def live() -> None:
    Heartbeat(bytes.fromhex(sys.argv[1]), sys.argv[2]).follow(0)
    print("lives", flush=True)
    await asyncio.sleep(1000)

asyncio.run(live())
"""
BUSY = "print('lives', flush=True)\nwhile True: pass"


@pytest.fixture
def secret() -> Iterator[bytes]:
    made = os.urandom(16)
    yield made
    remove_signs(made)
    assert not signs(made)


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "lives\n"
    return process


def sign_of(secret: bytes, name: str) -> Sign:
    found = read_sign(secret, name)
    assert found is not None
    return found


def test_a_stopped_worker_is_ended_and_one_that_lives_is_not(secret: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(BEATING, secret.hex(), "worker-0") as stopped, started(BEATING, secret.hex(), "worker-1") as living:
        stopped.send_signal(signal.SIGSTOP)
        dog = Watchdog(secret, silence_max_s=3, children={})
        beaten_at = sign_of(secret, "worker-1").beaten_at
        for _ in range(3):
            dog.look()
        assert stopped.poll() is None, "three turns are two of silence"
        while sign_of(secret, "worker-1").beaten_at == beaten_at:
            os.sched_yield()
        dog.look()
        assert stopped.wait(10) == -signal.SIGKILL
        assert living.poll() is None
        living.kill()


def test_a_worker_that_starts_may_take_its_time(secret: bytes) -> None:
    with started(BUSY) as starting:
        Heartbeat(secret, "worker-0", starting.pid)
        dog = Watchdog(secret, silence_max_s=1, children={})
        for _ in range(10):
            dog.look()
        assert starting.poll() is None
        starting.kill()


def test_who_waits_for_a_processor_is_given_more_time() -> None:
    with started(BUSY) as busy:
        used_s = psutil.Process(busy.pid).cpu_times().user
        assert not is_stuck(busy.pid, used_s, silent_s=20, limit_s=15)
        assert is_stuck(busy.pid, used_s - 10, silent_s=20, limit_s=15), "it computed all the time"
        assert is_stuck(busy.pid, used_s, silent_s=15 * watchdog.STARVED_TIMES, limit_s=15)
        busy.kill()


def test_the_sign_of_a_process_that_is_gone_belongs_to_nobody(secret: bytes) -> None:
    with started(BUSY) as gone:
        Heartbeat(secret, "worker-0", gone.pid).beat()
        assert sign_of(secret, "worker-0").is_alive
        gone.kill()
    assert birth(gone.pid) == 0
    assert not sign_of(secret, "worker-0").is_alive
    Watchdog(secret, 0, {}).look()


def test_problems_name_who_is_missing_starting_or_in_a_crash_loop(secret: bytes) -> None:
    for _ in range(LOOP_STARTS - 1):
        Heartbeat(secret, "worker-0").beat()
    Heartbeat(secret, "http")
    assert process_problems(("http", "adapter-0"), signs(secret)) == ["adapter-0 does not run", "http is starting"]
    Heartbeat(secret, "worker-0").beat()
    Heartbeat(secret, "http").beat()
    [problem] = process_problems(("http",), signs(secret))
    assert problem.startswith("worker-0 ends again and again: 4 starts")
    assert sign_of(secret, "http").starts == 2


def test_signs_of_a_cluster_stay_until_its_supervisor_is_gone(secret: bytes) -> None:
    with started(BUSY) as supervisor, started(BUSY) as worker:
        Heartbeat(secret, SUPERVISOR, supervisor.pid).beat()
        Heartbeat(secret, "worker-0", worker.pid).beat()
        worker.kill()
        worker.wait()
        remove_signs(os.urandom(16))  # as another cluster does when it starts
        assert signs(secret).keys() == {SUPERVISOR, "worker-0"}, "how often a worker had to be started is kept"
        supervisor.kill()
    remove_signs(os.urandom(16))
    assert not signs(secret)


def test_faults_name_damage_and_a_full_disk() -> None:
    assert shard_faults({"shard": 1, "damage": "", "read_only": False}) == []
    assert shard_faults({"shard": 1, "damage": "epoch 7 is missing", "read_only": True}) == [
        "shard 1 is damaged: epoch 7 is missing",
        "shard 1 is read-only: the disk is full",
    ]
