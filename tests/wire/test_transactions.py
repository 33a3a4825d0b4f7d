"""Transactions as clients drive them: statements, autocommit, savepoints, status flags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT, SERVER_STATUS

from tests.wire.server import ServerThread
from tests.wire.worker_server import worker_server


def connect(server: ServerThread, **more: Any) -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, user="root", database="wire", **more)


@pytest.fixture
def two(millrace: ServerThread) -> Iterator[tuple[Any, Any]]:
    one, other = connect(millrace, autocommit=True), connect(millrace, autocommit=True)
    one.cursor().execute("DROP TABLE IF EXISTS accounts")
    one.cursor().execute("CREATE TABLE accounts (id INT PRIMARY KEY, amount INT NOT NULL, UNIQUE KEY a (amount))")
    one.cursor().execute("INSERT INTO accounts VALUES (1, 10), (2, 20)")
    yield one, other
    one.close()
    other.close()


def rows(connection: Any, sql: str = "SELECT * FROM accounts ORDER BY id") -> list[Any]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return list(cursor.fetchall())


def do(connection: Any, *statements: str) -> None:
    for statement in statements:
        connection.cursor().execute(statement)


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN WORK", "START TRANSACTION", "START TRANSACTION READ WRITE", "SET autocommit = 0"])
@pytest.mark.parametrize("end", ["COMMIT", "COMMIT WORK", "BEGIN", "SET autocommit = 1", "CREATE TABLE IF NOT EXISTS other (a INT)"])
def test_work_is_private_until_committed(two: tuple[Any, Any], begin: str, end: str) -> None:
    one, other = two
    do(one, begin, "UPDATE accounts SET amount = 11 WHERE id = 1")
    assert one.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
    assert rows(one)[0] == (1, 11)
    assert rows(other)[0] == (1, 10)
    do(one, end)
    assert rows(other)[0] == (1, 11)


TOTAL = "SELECT SUM(amount) FROM accounts"
BOTH = "SELECT a.amount + b.amount FROM accounts a JOIN accounts b ON b.id = 2 WHERE a.id = 1"


@pytest.mark.parametrize(
    "begin",
    [
        ["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"],
        ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION"],
        ["SET SESSION transaction_isolation = 'SERIALIZABLE'", "SET autocommit = 0"],
    ],
)
def test_a_repeatable_transaction_selects_as_of_its_first_read(two: tuple[Any, Any], begin: list[str]) -> None:
    one, other = two
    for query in (TOTAL, BOTH, TOTAL, BOTH):  # views by now
        assert rows(one, query) == [(30,)]
    do(one, *begin)
    do(other, "UPDATE accounts SET amount = 11 WHERE id = 1")
    for query in (TOTAL, BOTH):
        assert rows(one, query) == [(31,)]
    do(other, "UPDATE accounts SET amount = 12 WHERE id = 1", "INSERT INTO accounts VALUES (3, 30)")
    for query in (TOTAL, BOTH):
        assert (rows(one, query), rows(other, query)) == ([(31,)], [(62 if query == TOTAL else 32,)])
    assert rows(one, "SELECT amount FROM accounts WHERE id = 1") == [(11,)]
    do(one, "UPDATE accounts SET amount = 25 WHERE id = 2")
    assert rows(one) == [(1, 11), (2, 25)]
    assert rows(one, "SELECT amount FROM accounts WHERE id = 1 FOR UPDATE") == [(12,)]
    do(one, "COMMIT", "SET autocommit = 1")
    for query in (TOTAL, BOTH):
        assert rows(one, query) == [(67 if query == TOTAL else 37,)]


def test_a_consistent_snapshot_is_of_the_moment_it_was_asked_for(two: tuple[Any, Any]) -> None:
    """As mysqldump --single-transaction does it."""
    one, other = two
    do(one, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    do(other, "UPDATE accounts SET amount = 11 WHERE id = 1", "DELETE FROM accounts WHERE id = 2")
    assert rows(one) == [(1, 10), (2, 20)]
    do(one, "ROLLBACK")
    assert rows(one) == [(1, 11)]


def test_only_the_next_transaction_is_repeatable_when_set_for_it_alone(two: tuple[Any, Any]) -> None:
    one, other = two
    do(one, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", "COMMIT", "BEGIN")
    assert rows(one, TOTAL) == [(30,)]
    do(other, "UPDATE accounts SET amount = 11 WHERE id = 1")
    assert rows(one, TOTAL) == [(31,)]


@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK WORK", "close", "reset"])
def test_work_that_is_not_committed_leaves_nothing(two: tuple[Any, Any], end: str) -> None:
    one, other = two
    do(one, "BEGIN", "INSERT INTO accounts VALUES (3, 30)", "DELETE FROM accounts WHERE id = 1")
    assert [row[0] for row in rows(one)] == [2, 3]
    if end == "close":
        one.close()
    elif end == "reset":
        one._execute_command(0x1F, b"")
        one._read_ok_packet()
    else:
        do(one, end)
    assert rows(other) == [(1, 10), (2, 20)]
    if end == "close":
        one.connect()


def test_status_flags_follow_the_transaction(millrace: ServerThread) -> None:
    connection = connect(millrace)
    flags = []
    for sql in ("SET autocommit = 1", "BEGIN", "COMMIT", "SET autocommit = 0", "DO 1", "SAVEPOINT a", "ROLLBACK"):
        do(connection, sql)
        status = connection.server_status
        flags.append((bool(status & SERVER_STATUS.SERVER_STATUS_AUTOCOMMIT), bool(status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)))
    assert flags == [(True, False), (True, True), (True, False), (False, False), (False, False), (False, True), (False, False)]


def test_savepoints(two: tuple[Any, Any]) -> None:
    one, _ = two
    do(one, "BEGIN", "INSERT INTO accounts VALUES (3, 30)", "SAVEPOINT sp1", "INSERT INTO accounts VALUES (4, 40)")
    with pytest.raises(pymysql.err.IntegrityError) as raised:
        do(one, "INSERT INTO accounts VALUES (5, 50), (1, 60)")
    assert raised.value.args == (1062, "Duplicate entry '1' for key 'accounts.PRIMARY'")
    assert len(rows(one)) == 4
    do(one, "ROLLBACK TO SAVEPOINT sp1", "SAVEPOINT `sp 2`", "INSERT INTO accounts VALUES (6, 60)", "RELEASE SAVEPOINT `sp 2`")
    for sql in ("ROLLBACK TO `sp 2`", "RELEASE SAVEPOINT nothing"):
        with pytest.raises(pymysql.err.OperationalError) as raised:
            do(one, sql)
        assert raised.value.args[0] == 1305
    do(one, "ROLLBACK TO sp1", "COMMIT")
    assert rows(one) == [(1, 10), (2, 20), (3, 30)]


def test_completion_clauses(two: tuple[Any, Any]) -> None:
    one, _ = two
    do(one, "BEGIN", "COMMIT AND CHAIN")
    assert one.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
    do(one, "ROLLBACK AND NO CHAIN NO RELEASE")
    assert not one.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
    do(one, "BEGIN", "COMMIT RELEASE")
    with pytest.raises(pymysql.err.OperationalError):
        do(one, "SELECT 1")
    one.connect()


def test_affected_rows_are_changed_or_found_ones(millrace: ServerThread, two: tuple[Any, Any]) -> None:
    one, _ = two
    assert one.cursor().execute("UPDATE accounts SET amount = 10 WHERE id = 1") == 0
    finder = connect(millrace, autocommit=True, client_flag=CLIENT.FOUND_ROWS)
    assert finder.cursor().execute("UPDATE accounts SET amount = 10 WHERE id = 1") == 1
    assert finder.cursor().execute("UPDATE accounts SET amount = amount + 100") == 2
    assert finder.cursor().execute("DELETE FROM accounts") == 2


def test_info_of_update_and_multi_row_insert(two: tuple[Any, Any]) -> None:
    one, _ = two
    do(one, "UPDATE accounts SET amount = 99 WHERE id = 1")
    assert one._result.message.lstrip(b"(&*'") == b"Rows matched: 1  Changed: 1  Warnings: 0"
    do(one, "INSERT INTO accounts VALUES (8, 80), (9, 90)")
    assert one._result.message[1:] == b"Records: 2  Duplicates: 0  Warnings: 0"


def test_lock_tables_is_accepted(two: tuple[Any, Any]) -> None:
    one, _ = two
    do(one, "LOCK TABLES accounts WRITE, accounts AS a READ LOCAL", "INSERT INTO accounts VALUES (3, 30)", "UNLOCK TABLES")
    with pytest.raises(pymysql.err.ProgrammingError) as raised:
        do(one, "LOCK TABLES nowhere READ")
    assert raised.value.args[0] == 1146


def test_set_transaction_is_for_the_next_one_alone(run: Any) -> None:
    run("CREATE TABLE once (id INT PRIMARY KEY)")
    run("SET TRANSACTION READ ONLY")
    run("BEGIN")
    with pytest.raises(pymysql.err.MySQLError, match="1792"):
        run("INSERT INTO once VALUES (1)")
    with pytest.raises(pymysql.err.MySQLError, match="1568"):
        run("SET TRANSACTION READ WRITE")
    run("COMMIT")
    run("INSERT INTO once VALUES (1)")
    run("SET TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE")
    assert run("SELECT @@transaction_read_only, @@transaction_isolation") == [(0, "READ-COMMITTED")]
    run("START TRANSACTION READ ONLY")
    with pytest.raises(pymysql.err.MySQLError, match="1792"):
        run("DELETE FROM once")
    run("ROLLBACK")
    run("SET SESSION TRANSACTION READ ONLY")
    with pytest.raises(pymysql.err.MySQLError, match="1792"):
        run("DELETE FROM once")
    run("SET SESSION TRANSACTION READ WRITE")
    run("DROP TABLE once")


def test_a_transaction_that_began_before_the_first_commit_of_all_sees_nothing_of_it(tmp_path: Path) -> None:
    with worker_server(tmp_path) as server:
        one, other = [pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True) for _ in range(2)]
        with one, other:
            do(one, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
            do(one, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            do(other, "INSERT INTO d.t VALUES (1)")
            assert rows(one, "SELECT * FROM d.t") == []
            do(one, "COMMIT")
            assert rows(one, "SELECT * FROM d.t") == [(1,)]
