"""sql_safe_updates, beside MariaDB: what would change a whole table is refused, also over several tables and with subqueries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

DEFINITIONS = (
    "DROP DATABASE IF EXISTS safely", "CREATE DATABASE safely", "USE safely",
    "CREATE TABLE t (a INT, b INT)", "CREATE TABLE s (id INT PRIMARY KEY, x INT, y INT, KEY (y))",
    "INSERT INTO t VALUES (1, 10), (2, 20), (2, 21)", "INSERT INTO s VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    "SET sql_safe_updates = 1",
)  # fmt: skip
STATEMENTS = (
    "UPDATE s SET x = 5",
    "UPDATE s SET x = 5 WHERE x = 1",
    "UPDATE s SET x = 5 WHERE id = 1",
    "UPDATE s SET x = 6 LIMIT 1",
    "DELETE FROM s WHERE y > 5",
    "UPDATE s JOIN t ON t.a = s.id SET s.x = 5",
    "UPDATE s JOIN t ON t.a = s.id SET s.x = 6 WHERE s.x = 1",
    "UPDATE s JOIN t ON t.a = s.id SET s.x = 6 WHERE s.id <> t.b",
    "DELETE s FROM s JOIN t ON t.a = s.id",
    "DELETE s FROM s JOIN s AS other ON other.y = s.x",
    "UPDATE s SET x = 1 WHERE id IN (SELECT a FROM t)",
    "UPDATE s SET x = 1 WHERE x = (SELECT MAX(a) FROM t)",
    "DELETE FROM s WHERE x IN (SELECT a FROM t)",
    "UPDATE s, (SELECT 1 AS one) AS d SET s.x = 2 WHERE s.id = d.one",
    "UPDATE s AS a JOIN s AS b ON a.id = b.id SET a.x = 7 WHERE b.id = 1",
    "UPDATE s AS a JOIN s AS b ON a.id = b.id SET a.x = 8, b.y = 9 WHERE b.id = 2",
    "UPDATE s AS a JOIN s AS b ON a.id = b.y SET a.x = 2 WHERE b.x = 1",
    "UPDATE s AS a JOIN s AS b ON a.x = b.x SET a.x = 2 WHERE b.id = 1",
    "UPDATE s AS a LEFT JOIN s AS b ON a.id = b.id SET a.x = 9 WHERE a.id = 3",
    "DELETE a FROM s AS a LEFT JOIN s AS b ON a.id = b.id WHERE a.id = 3",
)


@pytest.fixture
def cursors(millrace: ServerThread, mariadb: MariaDB) -> Iterator[list[Any]]:
    with ExitStack() as stack:
        found = []
        for port in (millrace.port, mariadb.port):
            cursor = stack.enter_context(pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)).cursor()
            for sql in DEFINITIONS:
                cursor.execute(sql)
            found.append(cursor)
        yield found
        for cursor in found:
            cursor.execute("DROP DATABASE safely")


def test_changes_without_a_key_are_refused(cursors: list[Any]) -> None:
    for sql in STATEMENTS:
        answers = []
        for cursor in cursors:
            try:
                answer: Any = cursor.execute(sql)
            except pymysql.err.MySQLError as error:
                answer = error.args[0]
            cursor.execute("SELECT * FROM s ORDER BY id")
            answers.append((answer, cursor.fetchall()))
        assert answers[0] == answers[1], sql


def test_a_table_that_is_only_read_needs_no_key(cursors: list[Any]) -> None:
    """In MySQL it does: see docs/status.md."""
    ours = cursors[0]
    assert ours.execute("UPDATE s JOIN t ON t.a = s.id SET s.x = 5 WHERE s.id = 1") == 1
    assert ours.execute("DELETE s FROM s JOIN t ON t.a = s.id WHERE s.y BETWEEN 1 AND 1") == 1
