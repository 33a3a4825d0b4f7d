"""GET_LOCK and its family, and SLEEP."""

from __future__ import annotations

import threading
from typing import Any

import pymysql
import pytest

from tests.wire.server import ServerThread


def connect(server: ServerThread) -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, user="root")


def one(connection: Any, sql: str) -> Any:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchone()[0]


def test_a_lock_excludes_others_until_released(millrace: ServerThread) -> None:
    first, second = connect(millrace), connect(millrace)
    assert one(first, "SELECT GET_LOCK('job', 10)") == 1
    assert one(first, "SELECT GET_LOCK('JOB', 10) AS got") == 1
    assert one(second, "SELECT GET_LOCK('job', 0)") == 0
    assert one(second, "SELECT IS_FREE_LOCK('job')") == 0
    assert one(second, "SELECT IS_USED_LOCK('job')") == one(first, "SELECT CONNECTION_ID()")
    assert one(second, "SELECT RELEASE_LOCK('job')") == 0
    assert one(first, "SELECT RELEASE_LOCK('job')") == 1
    assert one(second, "SELECT GET_LOCK('job', 0.01)") == 0
    assert one(first, "SELECT RELEASE_LOCK('job')") == 1
    assert one(first, "SELECT RELEASE_LOCK('job')") is None
    assert one(second, "SELECT GET_LOCK('job', 0)") == 1
    assert one(second, "SELECT RELEASE_ALL_LOCKS()") == 1


def test_a_lock_goes_to_who_waits_when_its_owner_leaves(millrace: ServerThread) -> None:
    first, second = connect(millrace), connect(millrace)
    one(first, "SELECT GET_LOCK('left', 1)")
    got: list[Any] = []
    waiter = threading.Thread(target=lambda: got.append(one(second, "SELECT GET_LOCK('left', 30)")))
    waiter.start()
    first.close()
    waiter.join(10)
    assert got == [1]


def test_functions_that_wait_take_the_right_arguments(millrace: ServerThread) -> None:
    connection = connect(millrace)
    assert one(connection, "SELECT SLEEP(0.001)") == 0
    assert one(connection, "/* from a pool */ SELECT SLEEP(0) AS slept") == 0
    connection.cursor().execute("DO SLEEP(0), RELEASE_ALL_LOCKS()")
    for sql, code in (
        ("SELECT GET_LOCK('x')", 1582),
        ("SELECT GET_LOCK('', 1)", 3057),
        ("SELECT SLEEP(-1)", 1210),
        ("SELECT SLEEP(1) FROM nowhere", 1046),
        ("SELECT NO_SUCH_FUNCTION(1)", 1305),
    ):
        with pytest.raises(pymysql.err.MySQLError) as raised:
            one(connection, sql)
        assert raised.value.args[0] == code, sql
