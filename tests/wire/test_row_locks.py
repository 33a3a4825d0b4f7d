"""Row locks as clients meet them; what both servers can do is asked of MariaDB too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

Connect = Callable[[], Any]


@pytest.fixture(params=["millrace", "mariadb"])
def connect(request: pytest.FixtureRequest, millrace: ServerThread) -> Iterator[Connect]:
    """Connections to a server with a fresh table."""
    opened = []
    if request.param == "millrace":
        port, database = millrace.port, "wire"
    else:
        server: MariaDB = request.getfixturevalue("mariadb")
        port, database = server.port, server.fresh_database()

    def open_one() -> Any:
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", database=database, autocommit=True)
        connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.cursor().execute("SET innodb_lock_wait_timeout = 30")
        opened.append(connection)
        return connection

    first = open_one().cursor()
    first.execute("DROP TABLE IF EXISTS child, jobs")
    first.execute("CREATE TABLE jobs (id INT PRIMARY KEY, n INT NOT NULL, state VARCHAR(9), UNIQUE KEY (n)) ENGINE=InnoDB")
    first.execute("INSERT INTO jobs VALUES (1, 10, 'new'), (2, 20, 'new'), (3, 30, 'new'), (4, 40, 'old')")
    yield open_one
    for each in opened:
        if each.open:
            each.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


def do(connection: Any, *statements: str) -> list[Any]:
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    return list(cursor.fetchall())


def refused(connection: Any, statement: str) -> int:
    with pytest.raises(pymysql.err.MySQLError) as raised:
        do(connection, statement)
    return int(raised.value.args[0])


def patience(connection: Any, seconds: int) -> None:
    do(connection, f"SET innodb_lock_wait_timeout = {seconds}")


@pytest.mark.parametrize(
    "begin, lock",
    [
        ("BEGIN", "SELECT * FROM jobs WHERE id = 1 FOR UPDATE"),
        ("DO 1", "SELECT * FROM jobs WHERE n = 10 FOR UPDATE"),
        ("BEGIN", "SELECT a.n FROM jobs a JOIN jobs b ON b.id = a.id WHERE a.id = 1 FOR UPDATE"),
        ("DO 1", "UPDATE jobs SET state = 'taken' WHERE id = 1"),
        ("BEGIN", "DELETE FROM jobs WHERE id = 1"),
        ("DO 1", "SELECT * FROM jobs WHERE id = 1 LOCK IN SHARE MODE"),
    ],
)
def test_a_locked_row_makes_writers_wait_and_no_one_else(connect: Connect, begin: str, lock: str) -> None:
    one, other = connect(), connect()
    do(one, "BEGIN", lock)
    patience(other, 1)
    do(other, begin)
    assert refused(other, "UPDATE jobs SET state = 'mine' WHERE id = 1") == 1205
    assert do(other, "SELECT state FROM jobs WHERE id = 1") == [("new",)]
    do(other, "UPDATE jobs SET state = 'mine' WHERE id = 2", "COMMIT")
    do(one, "ROLLBACK")
    do(other, "UPDATE jobs SET state = 'mine' WHERE id = 1")
    assert do(one, "SELECT state FROM jobs ORDER BY id") == [("mine",), ("mine",), ("new",), ("old",)]


def test_readers_share_a_lock(connect: Connect) -> None:
    one, other = connect(), connect()
    for each in (one, other):
        do(each, "BEGIN")
        assert do(each, "SELECT n FROM jobs WHERE id = 1 LOCK IN SHARE MODE") == [(10,)]
    patience(other, 1)
    assert refused(other, "SELECT n FROM jobs WHERE id = 1 FOR UPDATE") == 1205
    do(one, "COMMIT")
    assert do(other, "SELECT n FROM jobs WHERE id = 1 FOR UPDATE") == [(10,)]
    do(other, "COMMIT")


def test_a_statement_whose_lock_is_not_to_be_had_leaves_its_transaction(connect: Connect) -> None:
    one, other = connect(), connect()
    do(one, "BEGIN", "UPDATE jobs SET state = 'taken' WHERE id = 1")
    patience(other, 1)
    do(other, "BEGIN", "UPDATE jobs SET state = 'mine' WHERE id = 2")
    assert refused(other, "UPDATE jobs SET state = 'mine' WHERE id = 1") == 1205
    do(other, "COMMIT")
    do(one, "COMMIT")
    assert do(one, "SELECT state FROM jobs WHERE id < 3 ORDER BY id") == [("taken",), ("mine",)]


def test_who_waited_goes_on_with_what_the_other_committed(connect: Connect, pool: ThreadPoolExecutor) -> None:
    one, other, alone = connect(), connect(), connect()
    do(one, "BEGIN", "UPDATE jobs SET n = n + 1 WHERE id = 1")
    do(other, "BEGIN")
    waiting = [
        pool.submit(do, other, "UPDATE jobs SET n = n + 1 WHERE id = 1", "COMMIT"),
        pool.submit(do, alone, "UPDATE jobs SET n = n + 1 WHERE state = 'new' AND id < 2"),
    ]
    assert do(one, "SELECT n FROM jobs WHERE id = 1") == [(11,)]
    do(one, "COMMIT")
    for each in waiting:
        each.result()
    assert do(one, "SELECT n FROM jobs WHERE id = 1") == [(13,)]


def test_of_two_who_wait_for_each_other_one_is_refused(connect: Connect, pool: ThreadPoolExecutor) -> None:
    one, other = connect(), connect()
    do(one, "BEGIN", "UPDATE jobs SET state = 'one' WHERE id = 1")
    do(other, "BEGIN", "UPDATE jobs SET state = 'other' WHERE id = 2")
    waiting = {
        pool.submit(do, one, "UPDATE jobs SET state = 'one' WHERE id = 2"): one,
        pool.submit(do, other, "UPDATE jobs SET state = 'other' WHERE id = 1"): other,
    }
    errors = [each.exception() for each in waiting]
    [lost] = [each for each in errors if each is not None]
    assert lost.args[0] == 1213
    for each, connection in waiting.items():
        if each.exception() is None:
            do(connection, "COMMIT")
        else:  # its transaction is over
            assert do(connection, "SELECT COUNT(*) FROM jobs WHERE state = 'new'") in ([(3,)], [(1,)])
    states = do(one, "SELECT DISTINCT state FROM jobs WHERE id < 3")
    assert states in ([("one",)], [("other",)])


def test_rows_that_others_have_locked_can_be_skipped(connect: Connect) -> None:
    workers = [connect() for _ in range(4)]
    take = "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
    taken = []
    for worker in workers:
        do(worker, "BEGIN")
        taken.append(do(worker, take))
    assert taken == [[(1,)], [(2,)], [(3,)], []]
    do(workers[1], "COMMIT")
    assert do(workers[3], take) == [(2,)]
    assert do(workers[1], "SELECT id FROM jobs WHERE id IN (1, 4) FOR UPDATE SKIP LOCKED") == [(4,)]


def test_a_queue_hands_out_every_job_once(connect: Connect, pool: ThreadPoolExecutor) -> None:
    do(connect(), "DELETE FROM jobs", "INSERT INTO jobs VALUES " + ",".join(f"({n}, {n}, 'new')" for n in range(40)))
    connections = [connect() for _ in range(4)]

    def work(worker: Any) -> list[int]:
        taken = []
        while True:
            do(worker, "BEGIN")
            found = do(worker, "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
            if not found:
                do(worker, "COMMIT")
                return taken
            taken.append(found[0][0])
            do(worker, f"UPDATE jobs SET state = 'done' WHERE id = {found[0][0]}", "COMMIT")

    taken = [job for jobs in pool.map(work, connections) for job in jobs]
    assert sorted(taken) == list(range(40))


@pytest.mark.parametrize("end", ["ROLLBACK", "close", "kill", "DDL"])
def test_locks_go_with_their_transaction(connect: Connect, pool: ThreadPoolExecutor, end: str) -> None:
    one, other = connect(), connect()
    thread = one.thread_id()
    do(one, "BEGIN", "SELECT * FROM jobs FOR UPDATE")
    waiting = pool.submit(do, other, "UPDATE jobs SET state = 'mine' WHERE id = 3")
    match end:
        case "close":
            one.close()
        case "kill":
            do(connect(), f"KILL {thread}")
        case "DDL":
            do(one, "CREATE TABLE IF NOT EXISTS child (id INT)")
        case _:
            do(one, end)
    waiting.result()
    assert do(other, "SELECT state FROM jobs WHERE id = 3") == [("mine",)]


def test_an_insert_waits_for_one_of_the_same_key(connect: Connect, pool: ThreadPoolExecutor) -> None:
    one = connect()
    for number, (end, error) in enumerate([("COMMIT", 1062), ("ROLLBACK", None)], 5):
        do(one, "BEGIN", f"INSERT INTO jobs VALUES ({number}, {number}0, 'new')")
        waiting: list[Future[Any]] = [
            pool.submit(do, connect(), f"INSERT INTO jobs VALUES ({number}, {number}1, 'other')"),
            pool.submit(do, connect(), f"INSERT INTO jobs VALUES ({number}00, {number}0, 'other')"),
        ]
        do(one, end)
        errors = [each.exception() for each in waiting]
        assert [each and each.args[0] for each in errors] == [error, error]


def test_a_child_waits_for_what_becomes_of_its_parent(connect: Connect, pool: ThreadPoolExecutor) -> None:
    one, other = connect(), connect()
    do(one, "CREATE TABLE child (id INT PRIMARY KEY, job INT, FOREIGN KEY (job) REFERENCES jobs (id)) ENGINE=InnoDB")
    do(one, "BEGIN", "DELETE FROM jobs WHERE id = 4")
    waiting = pool.submit(do, other, "INSERT INTO child VALUES (1, 4)")
    do(one, "COMMIT")
    error = waiting.exception()
    assert error is not None and error.args[0] == 1452


def test_a_counter_that_many_connections_raise_is_exact(connect: Connect) -> None:
    connections = [connect() for _ in range(16)]
    together = threading.Barrier(16)

    def count(connection: Any, number: int) -> None:
        together.wait()
        for _ in range(10):
            if number % 2:
                do(connection, "UPDATE jobs SET n = n + 1 WHERE id = 4")
            else:
                do(connection, "BEGIN")
                [(n,)] = do(connection, "SELECT n FROM jobs WHERE id = 4 FOR UPDATE")
                do(connection, f"UPDATE jobs SET n = {n} + 1 WHERE id = 4", "COMMIT")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(count, connections, range(16)))
    assert do(connections[0], "SELECT n FROM jobs WHERE id = 4") == [(200,)]


# What MariaDB says, writes or does otherwise


@pytest.mark.parametrize("connect", ["millrace"], indirect=True)
def test_an_index_is_built_when_the_locks_on_its_rows_are_gone(connect: Connect, pool: ThreadPoolExecutor) -> None:
    one, other = connect(), connect()
    do(one, "BEGIN", "SELECT * FROM jobs FOR UPDATE")
    building = pool.submit(do, other, "CREATE INDEX by_state ON jobs (state)")
    assert do(one, "SELECT COUNT(*) FROM jobs WHERE state = 'new'") == [(3,)]
    do(one, "ROLLBACK")
    building.result()
    assert do(one, "SELECT id FROM jobs WHERE state = 'old'") == [(4,)]


@pytest.mark.parametrize("connect", ["millrace"], indirect=True)
def test_nowait_is_refused_at_once(connect: Connect) -> None:
    one, other = connect(), connect()
    do(one, "BEGIN", "SELECT * FROM jobs WHERE id = 1 FOR SHARE")
    assert do(other, "SELECT n FROM jobs WHERE id = 1 FOR SHARE NOWAIT") == [(10,)]
    assert refused(other, "SELECT n FROM jobs WHERE id = 1 FOR UPDATE NOWAIT") == 3572
    assert refused(other, "SELECT n FROM jobs ORDER BY n LIMIT 1 FOR UPDATE NOWAIT") == 3572
    assert do(other, "SELECT n FROM jobs WHERE id = 2 FOR UPDATE NOWAIT") == [(20,)]
    assert do(other, "SELECT id FROM jobs WHERE n < 30 FOR UPDATE SKIP LOCKED") == [(2,)]


@pytest.mark.parametrize("connect", ["millrace"], indirect=True)
def test_only_the_tables_that_are_named_are_locked(connect: Connect) -> None:
    one, other = connect(), connect()
    do(one, "CREATE TABLE child (id INT PRIMARY KEY, job INT)", "INSERT INTO child VALUES (1, 1)", "BEGIN")
    join = "SELECT j.id FROM jobs j JOIN child c ON c.job = j.id WHERE c.id = 1"
    assert do(one, f"{join} FOR UPDATE OF c") == [(1,)]
    do(other, "UPDATE jobs SET state = 'mine' WHERE id = 1")
    patience(other, 1)
    assert refused(other, "DELETE FROM child") == 1205
    assert refused(other, f"{join} FOR UPDATE OF nothing") == 3568
