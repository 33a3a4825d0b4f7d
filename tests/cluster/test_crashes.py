"""kill -9 while clients write: what was acknowledged is there exactly once, the rest as a whole or not at all."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import psutil
import pymysql
import pytest

from backend.network.connections import PATIENCE_S
from tests.serving import MillraceServer

WRITERS = 8
ROWS_PER_STATEMENT = 3
RECOVERY_S = 30.0


class Writers:
    """Connections that insert rows of their own and remember which statements were acknowledged."""

    def __init__(self, server: MillraceServer) -> None:
        self.server = server
        self.acknowledged: list[set[int]] = [set() for _ in range(WRITERS)]
        self.attempted = [0] * WRITERS
        self.progress = threading.Condition()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _write(self, writer: int) -> None:
        connection = None
        while not self._stop.is_set():
            try:
                if connection is None:
                    connection = self.server.connect("d", connect_timeout=5, read_timeout=60)
                statement = self.attempted[writer]
                self.attempted[writer] += 1
                rows = ", ".join(
                    f"({writer}, {statement}, {part}, 'x')" for part in range(ROWS_PER_STATEMENT)
                )
                with connection.cursor() as cursor:
                    cursor.execute(f"INSERT INTO t (writer, statement, part, v) VALUES {rows}")
                with self.progress:
                    self.acknowledged[writer].add(statement)
                    self.progress.notify_all()
            except pymysql.MySQLError:
                connection = None
                self._stop.wait(0.02)

    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def await_more(self, statements: int, timeout_s: float = RECOVERY_S) -> float:
        """Wait for that many further acknowledgements; how long it took."""
        started = time.monotonic()
        with self.progress:
            goal = self.count() + statements
            assert self.progress.wait_for(lambda: self.count() >= goal, timeout_s), (
                f"no progress within {timeout_s} s\n{self.server.logs()}"
            )
        return time.monotonic() - started

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def check(server: MillraceServer, writers: Writers) -> None:
    """Every acknowledged statement is there exactly once, every other wholly or not at all."""
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT writer, statement, part FROM t")
        rows = cursor.fetchall()
    assert len(rows) == len(set(rows)), "a row is there twice"
    parts: dict[tuple[int, int], set[int]] = {}
    for writer, statement, part in rows:
        parts.setdefault((writer, statement), set()).add(part)
    assert all(found == set(range(ROWS_PER_STATEMENT)) for found in parts.values()), "half a statement"
    for writer, statements in enumerate(writers.acknowledged):
        missing = [statement for statement in statements if (writer, statement) not in parts]
        assert not missing, f"acknowledged but lost: {missing}"


def start(data: Path, *options: str) -> MillraceServer:
    server = MillraceServer(data, "--workers=2", "--adapters=2", "--controllers=2", *options)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute(
            "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, writer INT, statement INT, part INT, v VARCHAR(10), "
            "UNIQUE KEY once (writer, statement, part))"
        )
    return server


def victims(server: MillraceServer) -> dict[str, int]:
    """A process id of every kind of process, by name, once there is a launcher: one that was killed leaves no sign until it is back."""
    deadline = time.monotonic() + 60
    found: dict[str, int] = {}
    while "launcher" not in found:
        assert time.monotonic() < deadline, server.logs()
        status = server.status()
        found = {each["name"]: each["process"] for each in status["processes"] if each["process"]}
        found |= {f"worker-{each['shard']}": each["process"] for each in status["shards"] if "process" in each}
    launcher = psutil.Process(found["launcher"])
    return found | dict(
        [("spark-jvm", child.pid) for child in launcher.children() if child.name() == "java"][:1]
    )


def crash(data: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    server = start(data)
    try:
        writers = Writers(server)
        try:
            writers.await_more(20)
            kinds = ["worker", "spark-jvm", "controller", "adapter", "zookeeper"]
            chance.shuffle(kinds)
            for number in range(kills):
                kind = kinds[number % len(kinds)]
                chosen = chance.choice(sorted(name for name in victims(server) if name.startswith(kind)))
                psutil.Process(victims(server)[chosen]).kill()
                took_s = writers.await_more(20)
                if kind == "worker":
                    assert took_s < PATIENCE_S, f"{chosen} took {took_s:.1f} s to take writes again"
        finally:
            writers.finish()
        check(server, writers)
        server.kill()
        server = MillraceServer(data, "--workers=2", "--adapters=2", "--controllers=2")
        check(server, writers)
    finally:
        server.kill()


def test_nothing_acknowledged_is_lost_when_any_process_is_killed(tmp_path: Path) -> None:
    crash(tmp_path / "data", seed=1, kills=6)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_in_twenty_kills(tmp_path: Path) -> None:
    crash(tmp_path / "data", seed=2, kills=20)


def test_reads_of_other_shards_go_on_while_a_worker_is_down(tmp_path: Path) -> None:
    server = start(tmp_path / "data", "--watchdog-s=0")  # which would replace the worker
    try:
        with server.connect("d") as connection, connection.cursor() as cursor:
            values = ", ".join(f"({n}, 0, {n}, 0, 'x')" for n in range(1, 41))
            cursor.execute(f"INSERT INTO t (id, writer, statement, part, v) VALUES {values}")
            worker = psutil.Process(server.status()["shards"][1]["process"])
            worker.suspend()
            try:
                answered = 0
                for number in range(1, 41):
                    with server.connect("d", read_timeout=1) as other, other.cursor() as reader:
                        try:
                            reader.execute(f"SELECT v FROM t WHERE id = {number}")
                            assert reader.fetchall() == (("x",),)
                            answered += 1
                        except pymysql.err.OperationalError:
                            continue  # the row is on the shard that does not answer
                assert 5 < answered < 35
            finally:
                worker.resume()
    finally:
        server.kill()


def test_everything_killed_at_once_comes_back(tmp_path: Path) -> None:
    server = start(tmp_path / "data")
    try:
        for _ in range(2):
            writers = Writers(server)
            writers.await_more(100)
            server.kill()
            writers.finish()
            server = MillraceServer(tmp_path / "data", "--workers=2", "--adapters=2")
            check(server, writers)
            with server.connect("d") as connection, connection.cursor() as cursor:
                cursor.execute("DELETE FROM t")
    finally:
        server.kill()
