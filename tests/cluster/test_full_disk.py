"""A disk that becomes full under a real worker: said, survived, and over when there is room again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from persistence.files.free_space import OPENING_BYTES, RESERVE_BYTES
from tests.cluster.test_watchdog import health, processes
from tests.serving import MillraceServer

DISK_BYTES = 320 << 20
DISK_FULL = 1021
PATIENCE_S = 90.0
IN_DISK = """mount -t tmpfs -o size=$1 none "$2" && shift 2 && exec "$@\""""


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MillraceServer]:
    """Workers whose shards are on a small disk of their own."""
    shards = tmp_path / "data" / "shards"
    shards.mkdir(parents=True)
    namespace = ("unshare", "--user", "--map-root-user", "--mount")
    within = (*namespace, "sh", "-c", IN_DISK, "sh", str(DISK_BYTES), str(shards))
    server = MillraceServer(tmp_path / "data", "--controllers=1", f"--workers={request.param}", within=within)
    yield server
    server.kill()


def other_file(server: MillraceServer) -> Path:
    """Somebody else's file on that disk, as it is seen from out here."""
    return Path(f"/proc/{server.process.pid}/root{server.data}/shards/others")


def leave(server: MillraceServer, free_bytes: int) -> None:
    """Have somebody else take the room, or give it back."""
    path = other_file(server)
    path.unlink(missing_ok=True)
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        left = psutil.disk_usage(str(path.parent)).free
        while left > free_bytes:
            left -= file.write(bytes(min(1 << 20, left - free_bytes)))


def code_of(server: MillraceServer, sql: str) -> int:
    """0, or the error that a statement ends with, however long that takes."""
    try:
        run(server, sql)
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


def run(server: MillraceServer, sql: str) -> Any:
    with server.connect(read_timeout=PATIENCE_S) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def until(server: MillraceServer, holds: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, (health(server), server.logs())


@pytest.mark.slow
def test_a_full_disk_is_said_and_survived_and_over_when_there_is_room(server: MillraceServer) -> None:
    run(server, "CREATE DATABASE d")
    run(server, "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT)")
    run(server, "INSERT INTO d.t VALUES (0, 'zero')")
    leave(server, RESERVE_BYTES + (4 << 20))
    stored = 1
    while not (code := code_of(server, f"INSERT INTO d.t VALUES ({stored}, REPEAT('{stored % 10}', 500000))")):
        stored += 1
        assert stored < 200
    assert code == DISK_FULL
    until(server, lambda: health(server)[0] == 503)
    assert "shard 0 is read-only: the disk is full" in health(server)[1]["reason"]
    assert run(server, "SELECT COUNT(*), MAX(id) FROM d.t") == ((stored, stored - 1),)
    assert code_of(server, f"DELETE FROM d.t WHERE id = {stored - 1}") == 0, "there is room to delete"
    stored -= 1

    leave(server, OPENING_BYTES // 2)
    worker = processes(server)["worker-0"]
    psutil.Process(worker).kill()
    until(server, lambda: processes(server)["worker-0"] not in (None, worker))
    worker = processes(server)["worker-0"]
    assert run(server, "SELECT COUNT(*), MAX(id) FROM d.t") == ((stored, stored - 1),)
    assert code_of(server, "INSERT INTO d.t VALUES (1000, 'more')") == DISK_FULL
    assert code_of(server, "DELETE FROM d.t WHERE id = 0") == DISK_FULL
    assert health(server)[0] == 503
    assert run(server, "SELECT v FROM d.t WHERE id = 0") == (("zero",),)
    assert processes(server)["worker-0"] == worker, "it does not end again and again"

    other_file(server).unlink()
    until(server, lambda: code_of(server, "REPLACE INTO d.t VALUES (1000, 'more')") == 0)
    until(server, lambda: health(server)[0] == 200)
    assert run(server, "SELECT COUNT(*), MAX(id) FROM d.t") == ((stored + 1, 1000),)
