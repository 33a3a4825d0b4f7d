"""Processes of a real cluster that stand still are replaced, and /health tells the truth meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from tests.serving import MillraceServer

WATCHDOG_S = 4.0
PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("watchdog") / "data", f"--watchdog-s={WATCHDOG_S}", "--controllers=2")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
        cursor.execute("INSERT INTO d.t (v) VALUES (1), (2), (3)")
    yield server
    assert server.stop() == 0


def health(server: MillraceServer) -> tuple[int, dict[str, Any]]:
    """The status code and body of /health; 0 while nobody answers."""
    try:
        with urllib.request.urlopen(server.request("/health"), timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except (OSError, ValueError):
        return 0, {}


def until_ready(server: MillraceServer) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := health(server))[0] != 200:
        assert time.monotonic() < deadline, f"{found}\n{server.logs()}"


def processes(server: MillraceServer) -> dict[str, Any]:
    return {each["name"]: each["process"] for each in server.status()["processes"]}


def read(server: MillraceServer) -> int:
    """The number of rows, however often one has to ask."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with (
            contextlib.suppress(pymysql.err.Error),
            server.connect("d", read_timeout=60, connect_timeout=20) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT COUNT(*), SUM(v) FROM t")
            [count, _] = cursor.fetchone() or (0, 0)
            return int(count)
        assert time.monotonic() < deadline, server.logs()


@pytest.mark.parametrize(
    "names",
    [
        ("adapter-0", "http", "controller-0", "controller-1"),
        ("worker-0", "zookeeper"),
        pytest.param(("launcher",), marks=pytest.mark.slow),
        pytest.param(("JVM",), marks=pytest.mark.slow),
    ],
    ids=lambda names: names[0],
)
def test_processes_that_stand_still_are_replaced_and_clients_go_on(server: MillraceServer, names: tuple[str, ...]) -> None:
    until_ready(server)
    before = processes(server)
    assert before["http"] != server.process.pid
    [jvm] = [each.pid for each in psutil.Process(before["launcher"]).children() if each.name() == "java"]
    victims = [jvm if name == "JVM" else before[name] for name in names]
    for victim in victims:
        os.kill(victim, signal.SIGSTOP)
    psutil.wait_procs([psutil.Process(victim) for victim in victims if psutil.pid_exists(victim)], timeout=PATIENCE_S)
    assert not [victim for victim in victims if psutil.pid_exists(victim)]
    assert read(server) == 3
    until_ready(server)
    after = processes(server)
    replaced = ("launcher",) if "JVM" in names else names
    assert all(after[name] != before[name] for name in replaced)
    assert after["supervisor"] == before["supervisor"] == server.process.pid


def test_a_statement_that_waits_for_a_worker_that_stands_still_is_answered(server: MillraceServer) -> None:
    until_ready(server)
    with server.connect("d") as connection, connection.cursor() as cursor:
        os.kill(processes(server)["worker-0"], signal.SIGSTOP)
        cursor.execute("SELECT COUNT(*), MAX(v) FROM t")
        assert cursor.fetchone() == (3, 3)


def test_health_says_what_is_wrong(server: MillraceServer) -> None:
    until_ready(server)
    os.kill(processes(server)["worker-0"], signal.SIGSTOP)
    while (found := health(server))[0] == 200:
        pass
    assert found[0] == 503 and "shard 0" in found[1]["reason"]


@pytest.mark.slow
def test_health_is_bad_while_a_worker_ends_again_and_again(server: MillraceServer) -> None:
    until_ready(server)
    ended: set[int | None] = {None}
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < 5:
        assert time.monotonic() < deadline, server.logs()
        worker = processes(server)["worker-0"]
        if worker not in ended:
            ended.add(worker)
            os.kill(worker, signal.SIGKILL)
    assert read(server) == 3
    code, body = health(server)
    assert code == 503 and "worker-0 ends again and again" in body["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "rows"), [(1, 2_000), (1, 6_000), (2, 2_000), (2, 6_000)])
def test_a_view_that_holds_up_its_worker_is_set_aside_and_named(tmp_path: Path, workers: int, rows: int) -> None:
    """Each row of it takes a fifth of a second when it changes, and one statement changes all of them.

    The views of one worker follow 6,000 rows in a thread.
    """
    hashed = "SELECT MAX(SHA2(REPEAT('x', times), 512)) FROM heavy WHERE kind = 1"
    light = "SELECT MAX(v) FROM light WHERE kind = 1"
    server = MillraceServer(tmp_path / "data", "--controllers=1", "--watchdog-s=10", f"--workers={workers}")
    try:
        with server.connect(read_timeout=300) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE heavy (id INT PRIMARY KEY, kind INT, times INT, KEY (kind))")
            cursor.execute("CREATE TABLE light (id INT PRIMARY KEY, kind INT, v INT, KEY (kind))")
            cursor.execute("INSERT INTO light VALUES (1, 1, 1)")
            for start in range(0, rows, 2_000):
                cursor.execute("INSERT INTO heavy VALUES " + ", ".join(f"({start + each}, 1, 1)" for each in range(2_000)))
            while cursor.execute("SELECT name FROM millrace.views WHERE key_count > 0") < 2:
                for query in (hashed, light):
                    cursor.execute(query)
            before = set(processes(server).values())
            cursor.execute("UPDATE heavy SET times = 60000000 + id")
            assert cursor.rowcount == rows
            assert len(before - set(processes(server).values())) == 1, "the worker that stood still was replaced"
            until_ready(server)

            def is_named() -> bool:
                cursor.execute(light)
                return "set aside" in states(cursor)

            until(is_named)
            [reason] = states(cursor)["set aside"]
            assert "the worker stood still while it ran this view's code" in reason
            cursor.execute("UPDATE heavy SET times = 1 WHERE id > 0")
            cursor.execute("INSERT INTO heavy VALUES (6000, 1, 60000000)")  # nobody is held up any more
            cursor.execute("UPDATE light SET v = 2")
            cursor.execute(light)
            assert cursor.fetchone() == (2,)
            until(lambda: "partial" in states(cursor))
    finally:
        server.kill()


def states(cursor: Any) -> dict[str, list[str]]:
    """Why the views are as they are, by their states."""
    cursor.execute("SELECT state, reason FROM millrace.views")
    found: dict[str, list[str]] = {}
    for state, reason in cursor.fetchall():
        found.setdefault(state, []).append(reason)
    return found


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline


@pytest.mark.slow
def test_stop_ends_what_stands_still(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--controllers=1")
    found = processes(server)
    for name in ("http", "adapter-0", "controller-0"):
        os.kill(found[name], signal.SIGSTOP)
    assert server.stop() == 0
