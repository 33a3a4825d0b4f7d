"""Row locks where there are several workers and adapters, and where these are killed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pymysql
import pytest

from tests.serving import MillraceServer


@pytest.fixture(scope="module")
def server(shared_server: MillraceServer) -> MillraceServer:
    with shared_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS d")
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY, n INT NOT NULL)")
        cursor.execute("INSERT INTO d.t VALUES " + ", ".join(f"({number}, 0)" for number in range(20)))
    return shared_server


@pytest.fixture
def pair(server: MillraceServer) -> Iterator[tuple[Any, Any]]:
    """Two connections to different adapters: their numbers tell."""
    opened: dict[int, Any] = {}
    while len(opened) < 2:
        connection = server.connect("d")
        number = do(connection, "SELECT CONNECTION_ID()")[0][0] % 2
        if number in opened:
            connection.close()
        else:
            opened[number] = connection
    yield opened[0], opened[1]
    for connection in opened.values():
        if connection.open:
            connection.close()


def do(connection: Any, *statements: str) -> list[Any]:
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    return list(cursor.fetchall())


def process(server: MillraceServer, kind: str, number: int) -> psutil.Process:
    status = server.status()
    if kind == "worker":
        return psutil.Process(next(each["process"] for each in status["shards"] if each["shard"] == number))
    return psutil.Process(next(each["process"] for each in status["processes"] if each["name"] == f"{kind}-{number}"))


def test_a_writer_at_another_adapter_waits(pair: tuple[Any, Any]) -> None:
    one, other = pair
    do(one, "BEGIN", "UPDATE t SET n = n + 1")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(do, other, "UPDATE t SET n = n + 1")
        assert do(one, "SELECT SUM(n) FROM t") == [(20,)]
        do(one, "COMMIT")
        waiting.result()
    assert do(one, "SELECT SUM(n), MIN(n) FROM t") == [(40, 2)]
    do(one, "UPDATE t SET n = 0")


def test_circles_of_waiting_are_found_wherever_the_rows_are(pair: tuple[Any, Any]) -> None:
    refusals = 0
    with ThreadPoolExecutor(2) as pool:
        for second in range(1, 9):
            for number, (connection, own) in enumerate(zip(pair, (0, second))):
                do(connection, "BEGIN", f"UPDATE t SET n = {number} WHERE id = {own}")
            waiting = [
                pool.submit(do, connection, f"UPDATE t SET n = {number} WHERE id = {others}")
                for number, (connection, others) in enumerate(zip(pair, (second, 0)))
            ]
            errors = [each.exception() for each in waiting]
            [refusal] = [each for each in errors if each is not None]
            assert refusal.args[0] == 1213
            refusals += 1
            for connection in pair:
                do(connection, "COMMIT")
            [(first,), (last,)] = do(pair[0], f"SELECT n FROM t WHERE id IN (0, {second})")
            assert first == last
    assert refusals == 8
    do(pair[0], "UPDATE t SET n = 0")


def test_a_counter_is_exact_whoever_raises_it(server: MillraceServer) -> None:
    def count(number: int) -> None:
        with server.connect("d") as connection:
            for _ in range(10):
                if number % 2:
                    do(connection, "UPDATE t SET n = n + 1 WHERE id = 19")
                else:
                    do(connection, "BEGIN")
                    [(n,)] = do(connection, "SELECT n FROM t WHERE id = 19 FOR UPDATE")
                    do(connection, f"UPDATE t SET n = {n} + 1 WHERE id = 19", "COMMIT")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(count, range(16)))
    with server.connect("d") as connection:
        assert do(connection, "SELECT n FROM t WHERE id = 19") == [(160,)]


def test_locks_of_a_killed_adapter_are_gone(server: MillraceServer, pair: tuple[Any, Any]) -> None:
    one, other = pair
    number = do(one, "SELECT CONNECTION_ID()")[0][0] % 2
    do(one, "BEGIN", "SELECT * FROM t FOR UPDATE", "UPDATE t SET n = 77 WHERE id = 1")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(do, other, "UPDATE t SET n = 5")
        names = {each["name"] for each in server.status()["processes"] if each["name"].startswith("adapter")}
        assert f"adapter-{number}" in names, names
        process(server, "adapter", number).kill()
        waiting.result()
    assert do(other, "SELECT DISTINCT n FROM t") == [(5,)]


def test_versions_decide_after_a_worker_has_lost_its_locks(server: MillraceServer) -> None:
    with server.connect("d") as one, server.connect("d") as other:
        do(one, "BEGIN", "UPDATE t SET n = 1")
        for number in range(2):
            process(server, "worker", number).kill()
        do(other, "UPDATE t SET n = 2 WHERE id = 3")
        with pytest.raises(pymysql.err.OperationalError) as raised:
            do(one, "COMMIT")
        assert raised.value.args[0] == 1213
        assert do(one, "SELECT n FROM t WHERE id IN (3, 4)") == [(2,), (5,)]
