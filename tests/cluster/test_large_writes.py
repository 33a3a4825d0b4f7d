"""Large transactions: the worker answers others meanwhile, nobody sees half of one, and no crash leaves half of one."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil
import pymysql
import pytest

from tests.cluster.test_crashes import victims
from tests.serving import MillraceServer

ROWS = 50_000
HOLD_MS_MAX = 100
"""Of processor time, with everything else that the worker does within a beat."""


def start(data: Path, *options: str) -> MillraceServer:
    server = MillraceServer(data, *options)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL, w INT NOT NULL, KEY (w))")
        cursor.execute("CREATE TABLE d.other (id INT PRIMARY KEY, v INT NOT NULL)")
        cursor.execute("INSERT INTO d.other VALUES (1, 0)")
        for first in range(0, ROWS, 10_000):
            cursor.execute(f"INSERT INTO d.t VALUES {', '.join(f'({n}, 0, {n % 7})' for n in range(first, first + 10_000))}")
    return server


class Reader:
    """Reads, on a connection of its own, what must be one value however many rows it is read from."""

    def __init__(self, server: MillraceServer) -> None:
        self._connection = server.connect("d")
        self._stop = threading.Event()
        self.seen: list[set[int]] = []
        self.writes = 0
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self._connection, self._connection.cursor() as cursor:
            while not self._stop.is_set():
                for query in (
                    f"SELECT v FROM t WHERE id IN (0, {ROWS // 2}, {ROWS - 1})",
                    "SELECT v FROM t WHERE w = 3 ORDER BY id DESC LIMIT 50",
                    "SELECT MIN(v) FROM t UNION SELECT MAX(v) FROM t",
                ):
                    cursor.execute(query)
                    self.seen.append({row[0] for row in cursor.fetchall()})
                cursor.execute("UPDATE other SET v = v + 1 WHERE id = 1")
                self.writes += 1

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("workers", [1, 2])
def test_nobody_sees_half_of_a_large_update_and_the_worker_is_never_held_for_long(tmp_path: Path, workers: int) -> None:
    server = start(tmp_path / "data", f"--workers={workers}")
    try:
        reader = Reader(server)
        with server.connect("d") as connection, connection.cursor() as cursor:
            for expected, commit in ((1, "SELECT 1"), (2, "COMMIT")):
                cursor.execute("BEGIN" if commit == "COMMIT" else commit)  # which locks the rows, and lets them go
                assert cursor.execute("UPDATE t SET v = v + 1") == ROWS
                cursor.execute(commit)
                cursor.execute("SELECT MIN(v), MAX(v), COUNT(*), SUM(w) FROM t")
                assert cursor.fetchone() == (expected, expected, ROWS, sum(n % 7 for n in range(ROWS)))
            assert cursor.execute("DELETE FROM t WHERE id >= 30000") == ROWS - 30_000
            reader.finish()
            assert cursor.execute("INSERT INTO t SELECT id + 30000, v, w FROM t WHERE id < 20000") == 20_000
            cursor.execute("SELECT MIN(v), MAX(v), COUNT(*), MAX(id) FROM t")
            assert cursor.fetchone() == (2, 2, ROWS, ROWS - 1)
            cursor.execute("SELECT COUNT(*) FROM t WHERE w = 3 AND id < 30000")
            assert cursor.fetchone() == (sum(n % 7 == 3 for n in range(30_000)),)
            cursor.execute(f"SELECT COUNT(*), SUM(v) FROM t WHERE id IN ({', '.join(map(str, range(0, ROWS, 10)))})")
            assert cursor.fetchone() == (ROWS // 10, ROWS // 5)
            cursor.execute("SELECT v FROM other")
            assert cursor.fetchone() == (reader.writes,)
        assert all(len(values) == 1 for values in reader.seen), [values for values in reader.seen if len(values) > 1]
        assert {value for values in reader.seen for value in values} >= {0, 2}
        held = [shard["longest_hold_ms"] for shard in server.status()["shards"]]
        assert max(held) < HOLD_MS_MAX, held
    finally:
        reader.finish()
        server.kill()


def test_a_killed_worker_leaves_all_of_a_large_update_or_nothing(tmp_path: Path) -> None:
    server = start(tmp_path / "data")
    try:
        done = 0
        for delay_s in (0.4, 0.8, 1.2):
            results: list[int | pymysql.MySQLError] = []
            with server.connect("d") as connection, connection.cursor() as cursor:

                def update(cursor: pymysql.cursors.Cursor = cursor, results: list[int | pymysql.MySQLError] = results) -> None:
                    try:
                        results.append(cursor.execute("UPDATE t SET v = v + 1, w = w + 1"))
                    except pymysql.MySQLError as error:
                        results.append(error)

                thread = threading.Thread(target=update)
                thread.start()
                thread.join(delay_s)  # where in its life it is hit does not matter, only that it differs
                psutil.Process(victims(server)["worker-0"]).kill()
                thread.join()
            with server.connect("d") as connection, connection.cursor() as cursor:
                cursor.execute("SELECT v, COUNT(*), SUM(w) FROM t GROUP BY v")
                ((value, count, sum_w),) = cursor.fetchall()
                assert count == ROWS
                assert value == done + 1 if results == [ROWS] else value in (done, done + 1), results
                done = value
                assert sum_w == sum(n % 7 for n in range(ROWS)) + done * ROWS
                cursor.execute(f"SELECT COUNT(*) FROM t WHERE w = {done + 2}")
                assert cursor.fetchone() == (sum(n % 7 == 2 for n in range(ROWS)),)
        server.kill()
        server = MillraceServer(tmp_path / "data")
        with server.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT v, COUNT(*) FROM t GROUP BY v")
            assert cursor.fetchall() == ((done, ROWS),)
            cursor.execute("CHECK TABLE t")
            assert cursor.fetchall()[-1][-1] == "OK"
    finally:
        server.kill()
