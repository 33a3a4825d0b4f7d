"""Keys that nobody has asked for are filled by the worker, and answered as their packets arrive: as if executed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import MySQLdb
import pymysql
import pytest

from tests.wire.raw import DEPRECATE_EOF, PLAIN, ServerError, framed
from tests.wire.test_shortcuts import WARM, Client, execute, text
from tests.wire.worker_server import WorkerServer, worker_server

ROWS = 2000
OTHERS = range(70_000, 70_069)
"""Keys with rows, apart from those that are asked for one by one."""
POINT = "SELECT id, name, n FROM items WHERE id = {}"
COUNT = "SELECT i.id, i.name, COUNT(p.id) FROM items i LEFT JOIN parts p ON p.item = i.id WHERE i.id = {} GROUP BY i.id, i.name"
PAIR = "SELECT id FROM parts WHERE item = {} AND name = {}"
LIST = "SELECT id, name FROM items WHERE id IN ({}, {}, {})"
LONG_LIST = f"SELECT id, name FROM items WHERE id IN ({{}}, {', '.join(map(str, OTHERS))})"
PAIRS = "SELECT id, item FROM marks WHERE user = {} AND item IN ({}, {}, {}, {})"


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("missed"), workers=request.param) as found:
        with pymysql.connect(host="127.0.0.1", port=found.port, user="root", autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE quick")
            cursor.execute("USE quick")
            cursor.execute("CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(20), n INT)")
            cursor.execute("CREATE TABLE parts (id INT PRIMARY KEY, item INT, name VARCHAR(20), KEY (item, name))")
            cursor.execute("CREATE TABLE marks (id INT PRIMARY KEY, user INT, item INT, KEY (user, item))")
            cursor.execute("INSERT INTO marks VALUES " + ", ".join(f"({n}, {n % 5}, {n % 300})" for n in range(ROWS)))
            cursor.execute("INSERT INTO items VALUES " + ", ".join(f"({n}, 'item {n}', {n % 7})" for n in (*range(ROWS), *OTHERS)))
            cursor.execute("INSERT INTO parts VALUES " + ", ".join(f"({n}, {n // 3}, 'part {n % 3}')" for n in range(ROWS)))
        yield found


@pytest.fixture
def client(server: WorkerServer) -> Iterator[Client]:
    with Client(server) as found:
        found.query("USE quick")
        yield found


class Keys:
    """Keys that nobody has asked for; rows have those below ROWS."""

    def __init__(self) -> None:
        self._left = list(range(ROWS + 200))
        random.Random(3).shuffle(self._left)

    def take(self) -> int:
        return self._left.pop()


keys = Keys()


@pytest.mark.parametrize("sql", [POINT, COUNT, PAIR, LIST, LONG_LIST, PAIRS])
@pytest.mark.parametrize("capabilities", [PLAIN, DEPRECATE_EOF])
def test_a_miss_has_the_bytes_of_an_executed_statement(server: WorkerServer, sql: str, capabilities: int) -> None:
    with Client(server, capabilities) as client:
        client.query("USE quick")
        statement = client.prepare(sql.replace("{}", "?"))

        def values() -> list[Any]:
            if sql == PAIRS:
                return [3, keys.take(), keys.take(), 8, 13]
            return [keys.take(), "part 1"] if sql == PAIR else [keys.take() for _ in range(sql.count("{}"))]

        for _ in range(WARM):
            some = values()
            client.run(execute(statement, *some))
            client.run(text(sql.format(*map(repr, some))))
        for _ in range(10):
            some = values()
            for payload in random.sample([execute(statement, *some), text(sql.format(*map(repr, some)))], 2):
                assert client.is_answered_at_once(payload), payload
                assert client.run(payload) == client.executed(payload)


def test_misses_of_many_connections_are_answered_to_whom_they_belong(server: WorkerServer, client: Client) -> None:
    clients = [Client(server) for _ in range(20)]
    for each in clients:
        each.query("USE quick")
    for _ in range(20):
        wanted = [keys.take() for _ in clients]
        for each, key in zip(clients, wanted):
            each.command(3, POINT.format(key).encode())
        for each, key in zip(clients, wanted):
            rows = each.read_result()
            assert rows == client.query(POINT.format(key))
            assert len(rows) == (key < ROWS)
    for each in clients:
        each.__exit__()


def test_what_is_sent_after_a_miss_is_answered_after_it(client: Client) -> None:
    for _ in range(WARM):
        client.query(POINT.format(keys.take()))
    first, *others = [keys.take() for _ in range(20)]
    client.socket.sendall(framed(text(POINT.format(first)), 0))
    for key in others:
        client.socket.sendall(framed(text(f"SELECT {key}"), 0))
    found = [client.read_result() for _ in range(20)]
    assert found[0] == client.query(POINT.format(first))
    assert found[1:] == [client.query(f"SELECT {key}") for key in others]


def test_a_miss_shows_what_was_written_just_before(server: WorkerServer, client: Client) -> None:
    for _ in range(WARM):
        client.query(POINT.format(keys.take()))
    with Client(server) as other:
        other.query("USE quick")
        for key in range(10_000, 10_050):
            client.query(f"INSERT INTO items VALUES ({key}, 'new', 0)")
            payload = text(POINT.format(key))
            assert other.run(payload) == client.executed(payload)
            assert len(other.rows) == 1


@pytest.mark.parametrize("how", ["KILL QUERY", "KILL"])
def test_a_miss_that_is_waited_for_can_be_killed(server: WorkerServer, client: Client, how: str) -> None:
    with Client(server) as other:
        other.query("USE quick")
        [row] = other.query("SELECT CONNECTION_ID()")
        for _ in range(WARM):
            other.query(POINT.format(keys.take()))
        held = threading.Event()
        misses = server.cluster.shared.missed_keys
        assert misses is not None
        send, waiting = misses._send, []
        server.call(lambda: setattr(misses, "_send", lambda: (waiting.append(1), held.set())))
        try:
            other.socket.sendall(framed(text(POINT.format(keys.take())), 0))
            assert held.wait(10)
            processes = client.query("SHOW PROCESSLIST")
            assert any(row[1:] in each and b"Query" in each for each in processes)
            client.query(f"{how} {row[1:].decode()}")
            if how == "KILL":
                with pytest.raises((EOFError, ConnectionError)):
                    other.read_result()
            else:
                with pytest.raises(ServerError) as raised:
                    other.read_result()
                assert raised.value.code == 1317
        finally:
            server.call(lambda: (setattr(misses, "_send", send), send()))
        if how == "KILL QUERY":
            for _ in range(3):  # what comes for the one that was killed is nobody's answer
                key = keys.take()
                assert other.query(POINT.format(key)) == client.query(POINT.format(key))


def test_a_limited_time_is_kept_by_executing(client: Client) -> None:
    client.query("SET max_execution_time = 1000")
    for _ in range(WARM):
        client.query(POINT.format(keys.take()))
    payload = text(POINT.format(keys.take()))
    assert not client.is_answered_at_once(payload)
    assert client.is_answered_at_once(payload)


def test_misses_go_on_after_the_worker_was_lost(server: WorkerServer, client: Client) -> None:
    for _ in range(WARM):
        client.query(POINT.format(keys.take()))
    client.query("INSERT INTO items VALUES (20000, 'kept', 0)")
    server.wait_for(server.stop_worker())
    server.wait_for(server.start_worker())
    for key in [20_000, *[keys.take() for _ in range(10)]]:
        assert len(client.query(POINT.format(key))) == (key < ROWS or key == 20_000)


def test_drivers_with_compression_get_the_same(server: WorkerServer, client: Client) -> None:
    with MySQLdb.connect(host="127.0.0.1", port=server.port, user="root", database="quick", compress=1) as connection:
        cursor = connection.cursor()
        for _ in range(30):
            key = keys.take()
            cursor.execute(POINT.format(key))
            assert len(cursor.fetchall()) == len(client.query(POINT.format(key)))
