"""Answers from shared memory at two adapters: whatever was acknowledged anywhere is in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import mysql.connector
import psutil
import pytest

from tests.serving import MillraceServer

KEYS = 10
SUM = "SELECT a.id, a.n, SUM(b.n) FROM counts a JOIN parts b ON b.count_id = a.id WHERE a.id = {} GROUP BY a.id, a.n"
POINT = "SELECT id, n FROM counts WHERE id = {}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("shortcuts") / "data", "--adapters=2")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.counts (id INT PRIMARY KEY, n INT)")
        cursor.execute("CREATE TABLE d.parts (id INT PRIMARY KEY, count_id INT, n INT, KEY (count_id))")
        for key in range(KEYS):
            cursor.execute(f"INSERT INTO d.counts VALUES ({key}, 0)")
            cursor.execute(f"INSERT INTO d.parts VALUES ({2 * key}, {key}, 0), ({2 * key + 1}, {key}, 0)")
    yield server
    server.kill()


class Reader:
    """A connection to one of the adapters, that reads as text and prepared."""

    def __init__(self, server: MillraceServer, user: str = "root") -> None:
        connect: Any = mysql.connector.connect
        self.connection = connect(
            host=server.host, port=server.mysql_port, user=user, database="d", autocommit=True, use_pure=True
        )
        self.cursor: Any = self.connection.cursor()
        self._prepared = {sql: self.connection.cursor(prepared=True) for sql in (SUM, POINT)}
        self.adapter = self.connection.connection_id % 2

    def text(self, sql: str, key: int) -> list[Any]:
        self.cursor.execute(sql.format(key))
        return list(self.cursor.fetchall())

    def prepared(self, sql: str, key: int) -> list[Any]:
        cursor = self._prepared[sql]
        cursor.execute(sql.format("%s"), (key,))
        return list(cursor.fetchall())

    def number(self, key: int) -> int:
        """The number of a key, which every way to ask for it agrees on at this moment or a later one."""
        found = []
        for read in (self.text, self.prepared):
            [(id, n)] = read(POINT, key)
            [(other, again, total)] = read(SUM, key)
            assert id == other == key and total == 2 * again
            found += [n, again]
        assert found == sorted(found)
        return int(found[0])

    def shortcuts(self) -> int:
        self.cursor.execute("SHOW STATUS LIKE 'Millrace_shortcuts'")
        return int(self.cursor.fetchall()[0][1])


@pytest.fixture
def readers(server: MillraceServer) -> Iterator[list[Reader]]:
    """One at each adapter."""
    found: dict[int, Reader] = {}
    while len(found) < 2:
        reader = Reader(server)
        if reader.adapter in found:
            reader.connection.close()
        else:
            found[reader.adapter] = reader
    yield [found[0], found[1]]
    for reader in found.values():
        reader.connection.close()


def write(cursor: Any, key: int, number: int) -> None:
    cursor.execute("BEGIN")
    cursor.execute(f"UPDATE counts SET n = {number} WHERE id = {key}")
    cursor.execute(f"UPDATE parts SET n = {number} WHERE count_id = {key}")
    cursor.execute("COMMIT")


def test_what_one_adapter_has_acknowledged_the_other_answers(server: MillraceServer, readers: list[Reader]) -> None:
    for reader in readers:
        for key in list(range(KEYS)) * 3:
            reader.number(key)
    before = [reader.shortcuts() for reader in readers]
    for number in range(1, 40):
        key, writer = number % KEYS, readers[number % 2]
        write(writer.cursor, key, number)
        assert [reader.number(key) for reader in readers] == [number, number]
    assert all(reader.shortcuts() > count for reader, count in zip(readers, before))


def test_numbers_never_go_back_while_somebody_writes(server: MillraceServer, readers: list[Reader]) -> None:
    acknowledged = [0] * KEYS
    stopped = threading.Event()

    def keep_writing() -> None:
        with server.connect("d") as connection, connection.cursor() as cursor:
            for number in range(1000, 1150):
                write(cursor, number % KEYS, number)
                acknowledged[number % KEYS] = number
        stopped.set()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    seen = [0] * KEYS
    while not stopped.is_set():
        for reader in readers:
            for key in range(KEYS):
                least = max(acknowledged[key], seen[key])
                seen[key] = reader.number(key)
                assert seen[key] >= least
    writer.join()
    assert [readers[0].number(key) for key in range(KEYS)] == acknowledged


def test_a_worker_that_was_killed_is_followed_by_one_that_is_believed(
    server: MillraceServer, readers: list[Reader]
) -> None:
    for reader in readers:
        for key in list(range(KEYS)) * 3:
            reader.number(key)
    psutil.Process(server.status()["shards"][0]["process"]).kill()
    for number in range(2000, 2020):
        write(readers[number % 2].cursor, number % KEYS, number)
        assert [reader.number(number % KEYS) for reader in readers] == [number, number]


def test_a_privilege_taken_away_at_one_adapter_is_gone_at_the_other(server: MillraceServer, readers: list[Reader]) -> None:
    root = readers[0]
    root.cursor.execute("CREATE USER guest")
    root.cursor.execute("GRANT SELECT ON d.* TO guest")
    guest = Reader(server, "guest")
    while guest.adapter == root.adapter:
        guest.connection.close()
        guest = Reader(server, "guest")
    for key in list(range(KEYS)) * 3:
        guest.number(key)
    root.cursor.execute("REVOKE SELECT ON d.* FROM guest")
    deadline = time.monotonic() + 10
    refused = 0
    while refused < 2:
        assert time.monotonic() < deadline
        refused = 0
        for read in (guest.text, guest.prepared):
            try:
                read(POINT, 1)
            except mysql.connector.Error as error:
                assert error.errno in (1044, 1142)
                refused += 1
    guest.connection.close()
