"""Many connections at once: nothing is counted twice or lost, and each name is taken once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from tests.serving import MillraceServer


@pytest.fixture
def server(d_server: MillraceServer) -> MillraceServer:
    return d_server


def in_parallel(server: MillraceServer, count: int, work: Callable[[int, Any], None]) -> None:
    """Run work(number, cursor) in `count` threads, each with a connection of its own."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            with server.connect("d") as connection, connection.cursor() as cursor:
                barrier.wait(60)
                work(number, cursor)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_increments_of_one_row_all_count(server: MillraceServer) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL)")
        cursor.execute("INSERT INTO counters VALUES (1, 0)")

    def increment(number: int, cursor: Any) -> None:
        for _ in range(20):
            cursor.execute("UPDATE counters SET n = n + 1 WHERE id = 1")

    in_parallel(server, 8, increment)
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT n FROM counters WHERE id = 1")
        assert cursor.fetchall() == ((160,),)


def test_a_unique_name_is_taken_by_exactly_one(server: MillraceServer) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE names (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE)")
    taken = [0] * 30
    lock = threading.Lock()

    def take(number: int, cursor: Any) -> None:
        for name in range(30):
            try:
                cursor.execute(f"INSERT INTO names (name) VALUES ('n{name}')")
                with lock:
                    taken[name] += 1
            except pymysql.err.IntegrityError as error:
                assert error.args[0] == 1062

    in_parallel(server, 6, take)
    assert taken == [1] * 30
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT name), COUNT(DISTINCT id) FROM names")
        assert cursor.fetchall() == ((30, 30, 30),)


def test_transfers_keep_the_sum_for_every_reader(server: MillraceServer) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL)")
        cursor.execute("INSERT INTO accounts VALUES " + ", ".join(f"({n}, 100)" for n in range(10)))
    sums: set[int] = set()

    def work(number: int, cursor: Any) -> None:
        for step in range(25):
            if number == 0:
                cursor.execute("SELECT SUM(balance) FROM accounts")
                sums.add(int(cursor.fetchall()[0][0]))
                continue
            source, target = (number + step) % 10, (number * 3 + step * 7 + 1) % 10
            try:
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE accounts SET balance = balance - 1 WHERE id = {source}")
                cursor.execute(f"UPDATE accounts SET balance = balance + 1 WHERE id = {target}")
                cursor.execute("COMMIT")
            except pymysql.err.OperationalError as error:
                assert error.args[0] == 1213
                cursor.execute("ROLLBACK")

    in_parallel(server, 5, work)
    assert sums == {1000}


def test_statements_go_on_while_definitions_change(server: MillraceServer) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE changing (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL DEFAULT 0)")
        cursor.execute("INSERT INTO changing (n) VALUES (0), (0)")
    changed = threading.Event()
    written = [0] * 4

    def work(number: int, cursor: Any) -> None:
        if number == 0:
            try:
                for step in range(4):
                    cursor.execute(f"ALTER TABLE changing ADD COLUMN extra{step} INT DEFAULT {step}")
                    cursor.execute(f"CREATE INDEX i{step} ON changing (n)")
                    cursor.execute(f"ALTER TABLE changing DROP COLUMN extra{step}")
                cursor.execute("ALTER TABLE changing MODIFY n VARCHAR(20) NOT NULL")
                cursor.execute("ALTER TABLE changing MODIFY n BIGINT NOT NULL")
            finally:
                changed.set()
            return
        while not changed.is_set():
            cursor.execute("INSERT INTO changing (n) VALUES (1)")
            cursor.execute("UPDATE changing SET n = n + 1 WHERE id = 1")
            cursor.execute("SELECT n FROM changing WHERE id = 2")
            assert [str(row[0]) for row in cursor.fetchall()] == ["0"]
            written[number] += 1

    in_parallel(server, 4, work)
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT n FROM changing WHERE id = 1), COUNT(*) - 2 FROM changing")
        assert cursor.fetchall() == ((sum(written), sum(written)),)


def test_hundreds_of_connections_are_served(server: MillraceServer) -> None:
    connections = [server.connect("d") for _ in range(300)]
    try:
        for number, connection in enumerate(connections):
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {number} + 1")
                assert cursor.fetchall() == ((number + 1,),)
    finally:
        for connection in connections:
            connection.close()
