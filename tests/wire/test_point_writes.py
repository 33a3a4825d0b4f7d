"""Writes of one row that a worker runs by itself, alone or with another: what clients see is what MariaDB shows them, and what executing gives."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.mariadb import MariaDB
from tests.wire.raw import RawClient, framed
from tests.wire.test_shortcuts import execute
from tests.wire.worker_server import WorkerServer, worker_server

TABLES = (
    """CREATE TABLE votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL, user INT, note VARCHAR(5) DEFAULT 'none',
       KEY (story), UNIQUE KEY (story, user))""",
    "CREATE TABLE counts (name VARCHAR(10) PRIMARY KEY, n TINYINT NOT NULL, twice INT AS (n * 2) STORED, CHECK (n <> 13), KEY (twice))",
    "CREATE TABLE log (text VARCHAR(20), at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6))",
    "CREATE TABLE parents (id INT PRIMARY KEY)",
    "CREATE TABLE children (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parents (id))",
    "CREATE TABLE pairs (a INT, b VARCHAR(5), n INT, PRIMARY KEY (a, b))",
    "CREATE TABLE marks (id INT AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL, user INT, note VARCHAR(5) DEFAULT 'none', KEY (story, user))",
    "CREATE TABLE points (x INT, y SMALLINT UNSIGNED, n INT DEFAULT 1, PRIMARY KEY (y, x), KEY (n))",
)
STREAM = """
INSERT INTO votes (story, user) VALUES (1, 1)
INSERT INTO votes (story, user) VALUES (1, 2)
INSERT INTO votes (story, user) VALUES (1, 3)
INSERT INTO votes (story, user) VALUES (1, 2)
INSERT INTO votes (story, user) VALUES (1, NULL)
INSERT INTO votes (story, user) VALUES (1, NULL)
INSERT INTO votes (story, user) VALUES (NULL, 4)
INSERT INTO votes (story, user) VALUES ('7', '8')
INSERT INTO votes (story, user) VALUES ('7x', 9)
INSERT INTO votes (id, story, user) VALUES (50, 2, 1)
INSERT INTO votes (id, story, user) VALUES (0, 2, 2)
INSERT INTO votes (id, story, user) VALUES (NULL, 2, 3)
INSERT INTO votes (story, user, note) VALUES (3, 1, 'short')
INSERT INTO votes (story, user, note) VALUES (3, 2, 'too long')
UPDATE votes SET note = 'x' WHERE id = 1
UPDATE votes SET note = 'x' WHERE id = 1
UPDATE votes SET note = 'x' WHERE id = 1000
UPDATE votes SET note = 'much too long' WHERE id = 2
UPDATE votes SET user = user + 1 WHERE id = 3
UPDATE votes SET user = 1 WHERE id = 3
UPDATE votes SET user = NULL WHERE id = 3
UPDATE votes SET story = NULL WHERE id = 3
UPDATE votes SET id = 60 WHERE id = 3
UPDATE votes SET note = 'y' WHERE id = '2'
UPDATE votes SET note = 'z' WHERE id = 2.5
UPDATE votes SET note = 'n' WHERE id = 2 AND user = 77
UPDATE votes SET user = 1 / 0 WHERE id = 1
DELETE FROM votes WHERE id = 1
DELETE FROM votes WHERE id = 1
DELETE FROM votes WHERE id = 2 AND user = 77
INSERT INTO votes (story, user) VALUES (1, 1)
INSERT INTO counts (name, n) VALUES ('a', 1)
INSERT INTO counts (name, n) VALUES ('A', 2)
INSERT INTO counts (name, n) VALUES ('b', 13)
INSERT INTO counts (name, n) VALUES ('c', 200)
INSERT INTO counts (name) VALUES ('d')
UPDATE counts SET n = n + 1 WHERE name = 'A'
UPDATE counts SET n = 13 WHERE name = 'a'
UPDATE counts SET n = n + 126 WHERE name = 'a'
DELETE FROM counts WHERE name = 'A'
INSERT INTO log (text) VALUES ('one')
INSERT INTO log (text) VALUES ('two')
INSERT INTO children VALUES (1, 1)
INSERT INTO parents VALUES (1)
INSERT INTO children VALUES (1, 1)
DELETE FROM parents WHERE id = 1
UPDATE parents SET id = 2 WHERE id = 1
INSERT INTO pairs VALUES (1, 'x', 1)
INSERT INTO pairs VALUES (1, 'y', 1)
UPDATE pairs SET n = n + 1 WHERE a = 1 AND b = 'X'
UPDATE pairs SET n = n + 1 WHERE a = 1
DELETE FROM pairs WHERE b = 'y' AND a = 1
INSERT INTO pairs VALUES (1, 'x', 3)
INSERT INTO pairs VALUES (NULL, 'x', 3)
INSERT INTO marks (story, user) VALUES (1, 1)
INSERT INTO marks (story, user) VALUES (1, 2)
INSERT INTO marks (story, user) VALUES (2, NULL)
INSERT INTO marks (story, user, note) VALUES (3, 1, 'short')
UPDATE marks SET note = 'x' WHERE id = 1
UPDATE marks SET user = user + 1 WHERE id = 2
UPDATE marks SET id = 2 WHERE id = 2
DELETE FROM marks WHERE id = 3
DELETE FROM marks WHERE id = 3
INSERT INTO points (x, y) VALUES (1, 2)
INSERT INTO points (x, y) VALUES (-1, 2)
INSERT INTO points (x, y) VALUES (-1, 2)
INSERT INTO points (x, y) VALUES ('7', 3)
INSERT INTO points (x, y) VALUES (1, 70000)
INSERT INTO points (x, y) VALUES (1, -1)
INSERT INTO points (x, y) VALUES (NULL, 1)
UPDATE points SET n = n + 1 WHERE x = 1 AND y = 2
UPDATE points SET n = n + 1 WHERE x = 1.0 AND y = '2'
UPDATE points SET n = n + 1 WHERE x = 1.5 AND y = 2
UPDATE points SET x = 9 WHERE x = 7 AND y = 3
DELETE FROM points WHERE y = 2 AND x = -1
""".strip().splitlines()
MYSQL_CODES = {4025: 3819}
"""Of errors for which MariaDB has another number."""
SELECTS = [
    "SELECT * FROM votes ORDER BY id", "SELECT * FROM counts ORDER BY name", "SELECT text, at > '2020-01-01' FROM log ORDER BY text",
    "SELECT * FROM parents", "SELECT * FROM children", "SELECT * FROM pairs ORDER BY a, b", "SELECT COUNT(*) FROM votes FORCE INDEX (story)",
    "SELECT story, user FROM votes FORCE INDEX (story_2) ORDER BY story, user", "SELECT name FROM counts WHERE twice BETWEEN 2 AND 400",
    "SELECT * FROM marks ORDER BY id", "SELECT story, user FROM marks FORCE INDEX (story) ORDER BY story, user", "SELECT * FROM points ORDER BY y, x",
    "SELECT n, x FROM points FORCE INDEX (n) WHERE n BETWEEN 1 AND 9 ORDER BY n, x",
]  # fmt: skip


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("writes"), workers=request.param) as found:
        yield found


def connect(port: int, database: str | None = None, **options: Any) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", database=database, autocommit=True, **options)


def seen(connection: Any, sql: str) -> tuple[object, ...]:
    """Everything that a client is told of a statement."""
    with connection.cursor() as cursor:
        try:
            affected = cursor.execute(sql)
        except pymysql.err.MySQLError as error:
            return (MYSQL_CODES.get(error.args[0], error.args[0]),)
        rows = cursor.fetchall()
        info = getattr(connection._result, "message", b"")
        found = (affected, rows, cursor.lastrowid, connection._result.warning_count or 0, bytes(info or b""))
        cursor.execute("SELECT ROW_COUNT(), LAST_INSERT_ID()")
        return (*found, cursor.fetchone())


@pytest.mark.parametrize("flags", [0, CLIENT.FOUND_ROWS])
def test_what_clients_see_is_what_mariadb_shows(server: WorkerServer, mariadb: MariaDB, flags: int) -> None:
    ours, theirs = connect(server.port, client_flag=flags), connect(mariadb.port, client_flag=flags)
    for connection in (ours, theirs):
        for sql in ("DROP DATABASE IF EXISTS writes", "CREATE DATABASE writes", "USE writes", *TABLES):
            seen(connection, sql)
    for _ in range(3):  # statements come to be run by the worker when they have come before
        for sql in STREAM:
            assert seen(ours, sql) == seen(theirs, sql), sql
        for sql in SELECTS:
            assert seen(ours, sql)[1] == seen(theirs, sql)[1], sql
        for connection in (ours, theirs):
            seen(connection, "DELETE FROM pairs")
    ours.close()
    theirs.close()


@pytest.fixture
def prepared(server: WorkerServer) -> Iterator[Any]:
    with connect(server.port) as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS quick")
        cursor.execute("CREATE DATABASE quick")
        cursor.execute("USE quick")
        for sql in TABLES:
            cursor.execute(sql)
        yield cursor


def ran(server: WorkerServer) -> int:
    """How many transactions were statements that the worker has run."""
    return int(server.call(lambda: sum(worker.statements.run_count for worker in server.workers)))


def test_they_are_run_by_the_worker(server: WorkerServer, prepared: Any) -> None:
    for number in range(3):
        prepared.execute(f"INSERT INTO marks (story, user) VALUES (1, {number})")
        prepared.execute(f"UPDATE marks SET note = 'x{number}' WHERE id = {number + 1}")
    before = ran(server)
    for number in range(10, 20):
        prepared.execute(f"INSERT INTO marks (story, user) VALUES (1, {number})")
        prepared.execute(f"UPDATE marks SET note = 'y{number}' WHERE id = {prepared.lastrowid}")
        prepared.execute(f"DELETE FROM marks WHERE id = {prepared.lastrowid}")
    assert ran(server) >= before + 20


def test_inside_a_transaction_they_are_part_of_it(server: WorkerServer, prepared: Any) -> None:
    for number in range(4):
        prepared.execute(f"INSERT INTO votes (story, user) VALUES (1, {number})")
    before = ran(server)
    prepared.execute("BEGIN")
    prepared.execute("INSERT INTO votes (story, user) VALUES (1, 9)")
    prepared.execute("ROLLBACK")
    prepared.execute("SET autocommit = 0")
    prepared.execute("INSERT INTO votes (story, user) VALUES (1, 9)")
    prepared.execute("ROLLBACK")
    prepared.execute("SET autocommit = 1")
    assert ran(server) == before
    prepared.execute("SET SESSION TRANSACTION READ ONLY")
    with pytest.raises(pymysql.err.MySQLError) as raised:
        prepared.execute("INSERT INTO votes (story, user) VALUES (1, 9)")
    assert raised.value.args[0] == 1792
    prepared.execute("SELECT COUNT(*) FROM votes")
    assert prepared.fetchone() == (4,)


@pytest.mark.parametrize("columns", ["at, note", "note"])
def test_what_was_prepared_follows_the_session(server: WorkerServer, prepared: Any, columns: str) -> None:
    """Its AUTO_INCREMENT values and its time, with parameters of all types that travel as they are."""
    prepared.execute("CREATE TABLE moments (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME, set_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, note VARCHAR(5))")
    with RawClient(server.port) as client:
        client.query("USE quick")
        client.command(0x16, f"INSERT INTO moments ({columns}) VALUES ({', '.join('?' * len(columns.split()))})".encode())
        number = struct.unpack("<I", client.read_ok()[1:5])[0]
        given = [datetime(2024, 2, 29, 12, 31)] * columns.count("at,")
        for _ in range(len(given) + 2):
            client.read()
        before = ran(server)
        for note in ("a", "b", "c", None, None, None):
            client.socket.sendall(framed(execute(number, *given, note), 0))
            client.read_ok()
        assert ran(server) >= before + 2
        client.query("SET auto_increment_increment = 10, auto_increment_offset = 1, timestamp = 1000000000")
        for _ in range(2):
            client.socket.sendall(framed(execute(number, *given, "d"), 0))
            client.read_ok()
    prepared.execute("SELECT id, at, YEAR(set_at), note FROM moments ORDER BY id")
    rows = prepared.fetchall()
    numbers = [row[0] for row in rows]
    assert numbers[6] % 10 == 1 and numbers[7] == numbers[6] + 10 and numbers[6] > numbers[5]
    assert {row[1] for row in rows} == {*given, *([None] * (1 - len(given)))}
    assert [row[3] for row in rows] == ["a", "b", "c", None, None, None, "d", "d"]
    assert [row[2] for row in rows[6:]] == [2001, 2001] and rows[0][2] > 2001


def test_a_locked_row_is_waited_for(server: WorkerServer, prepared: Any) -> None:
    for number in range(4):
        prepared.execute(f"INSERT INTO votes (story, user) VALUES (1, {number})")
        prepared.execute(f"UPDATE votes SET note = 'a{number}' WHERE id = 1")
    with connect(server.port, "quick") as other, other.cursor() as locking:
        other.begin()
        locking.execute("SELECT note FROM votes WHERE id = 1 FOR UPDATE")
        locking.fetchone()
        done = threading.Event()

        def update() -> None:
            prepared.execute("UPDATE votes SET note = CONCAT(note, 'b') WHERE id = 1")
            done.set()

        waiting = threading.Thread(target=update)
        waiting.start()
        assert not done.wait(0.2)
        locking.execute("UPDATE votes SET note = 'L' WHERE id = 1")
        other.commit()
        waiting.join(10)
    prepared.execute("SELECT note FROM votes WHERE id = 1")
    assert prepared.fetchone() == ("Lb",)


def test_hot_rows_count_every_update(server: WorkerServer, prepared: Any) -> None:
    prepared.execute("INSERT INTO pairs VALUES (1, 'x', 0)")

    def add() -> None:
        with connect(server.port, "quick") as connection, connection.cursor() as cursor:
            for _ in range(50):
                assert cursor.execute("UPDATE pairs SET n = n + 1 WHERE a = 1 AND b = 'x'") == 1

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    prepared.execute("SELECT n FROM pairs")
    assert prepared.fetchone() == (400,)


def test_a_new_definition_and_lost_privileges_hold_at_once(server: WorkerServer, prepared: Any) -> None:
    prepared.execute("CREATE USER IF NOT EXISTS writer")
    prepared.execute("GRANT INSERT, SELECT ON quick.* TO writer")
    with pymysql.connect(host="127.0.0.1", port=server.port, user="writer", database="quick", autocommit=True) as other, other.cursor() as cursor:
        for number in range(4):
            cursor.execute(f"INSERT INTO pairs VALUES ({number}, 'x', 1)")
        prepared.execute("ALTER TABLE pairs ADD COLUMN more INT DEFAULT 7, ADD UNIQUE KEY (n, a)")
        cursor.execute("INSERT INTO pairs VALUES (10, 'x', 1, 2)")
        with pytest.raises(pymysql.err.MySQLError):
            cursor.execute("INSERT INTO pairs VALUES (11, 'x', 1)")
        prepared.execute("REVOKE INSERT ON quick.* FROM writer")
        with pytest.raises(pymysql.err.MySQLError) as raised:
            cursor.execute("INSERT INTO pairs VALUES (12, 'x', 1, 2)")
        assert raised.value.args[0] == 1142
    prepared.execute("SELECT a, more FROM pairs ORDER BY a")
    assert prepared.fetchall() == ((0, 7), (1, 7), (2, 7), (3, 7), (10, 2))


@pytest.mark.parametrize("table", ["votes", "marks"])
def test_each_happens_once_however_often_the_worker_is_lost(server: WorkerServer, prepared: Any, table: str) -> None:
    count, threads, ids = 60, [], list[int]()

    def insert(number: int) -> None:
        with connect(server.port, "quick") as connection, connection.cursor() as cursor:
            for each in range(count):
                cursor.execute(f"INSERT INTO {table} (story, user) VALUES ({number}, {each})")
                ids.append(cursor.lastrowid)

    for number in range(6):
        threads.append(threading.Thread(target=insert, args=(number,)))
        threads[-1].start()
    while any(thread.is_alive() for thread in threads):
        server.call(lambda: [peer.close() for peer in server.cluster._peers.values()])
        threads[0].join(0.01)
    prepared.execute(f"SELECT id FROM {table} ORDER BY id")
    assert [number for (number,) in prepared.fetchall()] == sorted(ids)
    assert len(ids) == 6 * count
