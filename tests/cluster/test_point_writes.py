"""Writes of one row that the worker runs by itself survive its kills: each that is acknowledged happened once, as it was said."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.serving import MillraceServer

WRITERS = 6
KILLS = 6
MORE = 30
RECOVERY_S = 60.0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_worker_has_run_itself_happened_once(tmp_path: Path, workers: int) -> None:
    server = MillraceServer(tmp_path / "data", f"--workers={workers}")
    unique = ", UNIQUE KEY (writer, number)" if workers == 1 else ""  # with one, its entries are on other shards than its row
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute(f"CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, writer INT, number INT{unique})")
        cursor.execute("CREATE TABLE d.counts (id INT PRIMARY KEY, n INT)")
        cursor.execute("INSERT INTO d.counts VALUES (1, 0)")
    stop, progress = threading.Event(), threading.Condition()
    ids: dict[tuple[int, int], int] = {}

    def write(writer: int) -> None:
        with server.connect("d", read_timeout=120) as connection, connection.cursor() as cursor:
            number = 0
            while not stop.is_set():
                cursor.execute(f"INSERT INTO t (writer, number) VALUES ({writer}, {number})")
                generated = cursor.lastrowid
                assert cursor.execute("UPDATE counts SET n = n + 1 WHERE id = 1") == 1
                with progress:
                    ids[writer, number] = generated
                    progress.notify_all()
                number += 1

    def await_more() -> None:
        with progress:
            goal = len(ids) + MORE
            assert progress.wait_for(lambda: len(ids) >= goal, RECOVERY_S), server.logs()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        for kill in range(KILLS):
            await_more()
            deadline = time.monotonic() + RECOVERY_S
            while not (found := [each["process"] for each in server.status()["shards"] if "process" in each]):
                assert time.monotonic() < deadline, server.logs()
            psutil.Process(found[kill % len(found)]).kill()
        await_more()
    finally:
        stop.set()
    for thread in threads:
        thread.join(RECOVERY_S)
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT writer, number, id FROM t")
        assert {(writer, number): id for writer, number, id in cursor.fetchall()} == ids
        cursor.execute("SELECT n FROM counts")
        assert cursor.fetchone() == (len(ids),)
    server.kill()
