"""Rows that many connections change at once: nothing is lost, nothing happens twice, also when things break."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from tests.cluster.test_concurrency import in_parallel
from tests.serving import MillraceServer

CONNECTIONS = 12
ROUNDS = 25


def value(server: MillraceServer, sql: str) -> Any:
    connection = server.connect("d")
    cursor = connection.cursor()
    cursor.execute(sql)
    [(found,)] = cursor.fetchall()
    connection.close()
    return found


def test_every_update_of_a_hot_row_counts_once(d_server: MillraceServer) -> None:
    server = d_server
    cursor = server.connect().cursor()
    cursor.execute("CREATE TABLE d.counters (id INT PRIMARY KEY, n INT NOT NULL, name VARCHAR(20), UNIQUE KEY (name), CHECK (n < 100000))")
    cursor.execute("INSERT INTO d.counters VALUES (1, 0, 'one'), (2, 0, 'two')")

    def work(number: int, cursor: Any) -> None:
        for turn in range(ROUNDS):
            assert cursor.execute("UPDATE counters SET n = n + 1 WHERE id = 1") == 1
            assert cursor.execute("INSERT INTO counters VALUES (3, 1, 'three') ON DUPLICATE KEY UPDATE n = n + 1") in (1, 2)
            assert cursor.execute("UPDATE counters SET n = n + 1 WHERE name = 'two'") == 1
            if turn % 5 == number % 5:  # errors are one's own, and take nothing of others with them
                for sql, code in (
                    ("UPDATE counters SET n = n + 1, name = 'two' WHERE id = 1", 1062),
                    ("UPDATE counters SET n = 100000 WHERE id = 1", 3819),
                ):
                    try:
                        cursor.execute(sql)
                        raise AssertionError(sql)
                    except pymysql.MySQLError as error:
                        assert error.args[0] == code
            if turn % 7 == number % 7:
                for sql in ("BEGIN", "UPDATE counters SET n = n + 1 WHERE id IN (1, 2)", "ROLLBACK"):
                    cursor.execute(sql)

    in_parallel(server, CONNECTIONS, work)
    expected = CONNECTIONS * ROUNDS
    for number in (1, 2, 3):
        assert value(server, f"SELECT n FROM counters WHERE id = {number}") == expected


def test_statements_over_the_same_rows_lock_them_in_one_order(d_server: MillraceServer) -> None:
    server = d_server
    cursor = server.connect().cursor()
    cursor.execute("CREATE TABLE d.counters (id INT PRIMARY KEY, n INT NOT NULL, place INT NOT NULL, KEY (place))")
    cursor.execute("INSERT INTO d.counters VALUES " + ", ".join(f"({number}, 0, {-number})" for number in range(8)))

    def work(number: int, cursor: Any) -> None:
        for turn in range(ROUNDS):
            cursor.execute("BEGIN")
            cursor.execute(
                (
                    "UPDATE counters SET n = n + 1 WHERE id IN (0, 1, 2, 3, 4, 5, 6, 7)",
                    "UPDATE counters SET n = n + 1 WHERE id IN (7, 6, 5, 4, 3, 2, 1, 0)",
                    "UPDATE counters SET n = n + 1",
                    "UPDATE counters SET n = n + 1 ORDER BY place",
                    "SELECT n FROM counters ORDER BY place FOR UPDATE",
                )[(turn + number) % 5]
            )
            if (turn + number) % 5 == 4:
                cursor.execute("UPDATE counters SET n = n + 1 WHERE place <= 0")
            cursor.execute("COMMIT")

    in_parallel(server, CONNECTIONS, work)
    assert value(server, "SELECT COUNT(*) FROM counters WHERE n = " + str(CONNECTIONS * ROUNDS)) == 8


@pytest.mark.slow
def test_no_acknowledged_update_is_lost_when_the_worker_dies(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--workers=1")
    try:
        cursor = server.connect().cursor()
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.counters (id INT PRIMARY KEY, n INT NOT NULL)")
        cursor.execute("INSERT INTO d.counters VALUES (1, 0)")
        acknowledged, unknown = [0] * CONNECTIONS, [0] * CONNECTIONS
        half = threading.Barrier(CONNECTIONS + 1)

        def work(number: int, cursor: Any) -> None:
            for turn in range(ROUNDS):
                if turn == ROUNDS // 2:
                    half.wait()
                try:
                    acknowledged[number] += cursor.execute("UPDATE counters SET n = n + 1 WHERE id = 1")
                except pymysql.MySQLError:
                    unknown[number] += 1

        def kill() -> None:
            half.wait()
            psutil.Process(server.status()["shards"][0]["process"]).kill()

        killer = threading.Thread(target=kill)
        killer.start()
        in_parallel(server, CONNECTIONS, work)
        killer.join()
        found = value(server, "SELECT n FROM counters WHERE id = 1")
        assert sum(acknowledged) <= found <= sum(acknowledged) + sum(unknown)
    finally:
        server.stop()
