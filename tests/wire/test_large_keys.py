"""With several workers a key that needs many rows is filled beside the epochs; until it is there its query is evaluated."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pymysql
import pytest

from dataflow.runtime import shard_worker
from tests.wire.worker_server import worker_server

DEADLINE_S = 60.0
SQL = "SELECT g, COUNT(*), SUM(n) FROM t WHERE g = {} GROUP BY g"


@pytest.mark.parametrize("workers", [2, 3])
def test_a_key_of_many_rows_is_filled_while_others_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(shard_worker, "ROWS_ASKED_MAX", 100)
    chance = random.Random(workers)
    rows = {n: (n % 3 and n, n) for n in range(3000)}
    with worker_server(tmp_path, workers=workers) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT, n INT, KEY (g))")
            cursor.execute("INSERT INTO t VALUES " + ", ".join(f"({n}, {g}, {m})" for n, (g, m) in rows.items()))

            def ask(group: int) -> None:
                cursor.execute(SQL.format(group))
                found = [n for g, n in rows.values() if g == group]
                assert cursor.fetchall() == (((group, len(found), sum(found)),) if found else ())

            def misses() -> int:
                cursor.execute("SELECT SUM(misses), SUM(key_count) FROM millrace.views")
                [(count, keys)] = cursor.fetchall()
                return int(count) if keys and int(keys) >= 2 else 0

            deadline = time.monotonic() + DEADLINE_S
            while not misses():
                number = chance.randrange(3000)
                rows[number] = chance.choice([0, 1, number]), chance.randrange(100)
                cursor.execute(f"REPLACE INTO t VALUES ({number}, {rows[number][0]}, {rows[number][1]})")
                ask(0)
                ask(1)
                assert time.monotonic() < deadline
            before = misses()
            for number in range(0, 3000, 100):
                rows[number] = 0, 7
                cursor.execute(f"REPLACE INTO t VALUES ({number}, 0, 7)")
                ask(0)
            assert misses() == before, "it is there, and follows"
