"""Privileges on columns, beside MariaDB: who may read, write and know of which column, over every way to ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import mysql.connector
import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

DEFINITIONS = (
    "DROP DATABASE IF EXISTS columns_of",
    "CREATE DATABASE columns_of",
    "USE columns_of",
    "DROP USER IF EXISTS clerk, owner",
    "CREATE USER clerk IDENTIFIED BY 'pw'",
    "CREATE USER owner IDENTIFIED BY 'pw'",
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, secret INT)",
    "CREATE TABLE u (id INT PRIMARY KEY, a INT, secret INT)",
    "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, a INT, secret INT)",
    "INSERT INTO t VALUES (1, 10, 100, 1000), (2, 20, 200, 2000), (3, 20, 300, 3000)",
    "INSERT INTO u VALUES (1, 10, 7), (2, 30, 8)",
    "CREATE VIEW v AS SELECT id, a, secret FROM t",
    "CREATE DEFINER = owner SQL SECURITY DEFINER VIEW seen AS SELECT id, a FROM t",
    "CREATE DEFINER = owner SQL SECURITY DEFINER VIEW hidden AS SELECT id FROM t WHERE secret > 0",
    "GRANT SELECT (id, a), UPDATE (a, b), INSERT (id, a), REFERENCES (id) ON t TO clerk",
    "GRANT SELECT (id), DELETE ON u TO clerk",
    "GRANT INSERT (a) ON log TO clerk",
    "GRANT SELECT (id, a) ON v TO clerk",
    "GRANT SELECT ON seen TO clerk",
    "GRANT SELECT ON hidden TO clerk",
    "GRANT SELECT (id, a) ON t TO owner",
)
STATEMENTS = (
    "SELECT id, a FROM t ORDER BY id",
    "SELECT COUNT(*) FROM t",
    "SELECT 1 FROM t LIMIT 1",
    "SELECT * FROM t",
    "SELECT t.* FROM t",
    "SELECT secret FROM t",
    "SELECT T2.secret FROM t AS T2",
    "SELECT id FROM t WHERE secret = 1000",
    "SELECT id FROM t ORDER BY secret",
    "SELECT a FROM t GROUP BY a HAVING MAX(secret) > 1",
    "SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY a",
    "SELECT a AS secret FROM t ORDER BY id",
    "SELECT SUM(b) FROM t",
    "SELECT t.id FROM t JOIN u ON u.id = t.id ORDER BY 1",
    "SELECT t.id FROM t JOIN u ON u.a = t.a",
    "SELECT t.id FROM t JOIN u USING (id) ORDER BY 1",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) ORDER BY id",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.secret)",
    "SELECT id FROM t WHERE id IN (SELECT secret FROM u)",
    "SELECT x FROM (SELECT id AS x FROM t) d ORDER BY x",
    "SELECT x FROM (SELECT secret AS x FROM t) d",
    "WITH c AS (SELECT secret FROM t) SELECT COUNT(*) FROM c",
    "SELECT id FROM t UNION SELECT secret FROM u",
    "SELECT id, ROW_NUMBER() OVER (ORDER BY secret) FROM t",
    "SELECT id, a FROM v ORDER BY id",
    "SELECT secret FROM v",
    "SELECT * FROM v",
    "SELECT id, a FROM seen ORDER BY id",
    "SELECT id FROM hidden",
    "INSERT INTO t (id, a) VALUES (4, 40)",
    "INSERT INTO t (id, b) VALUES (5, 50)",
    "INSERT INTO t VALUES (5, 1, 1, 1)",
    "INSERT INTO t (id, a) SELECT id + 10, a FROM t WHERE id = 1",
    "INSERT INTO t (id, a) SELECT id + 20, secret FROM u",
    "INSERT INTO t (id, a) VALUES (4, 41) ON DUPLICATE KEY UPDATE secret = 42",
    "REPLACE INTO t (id, a) VALUES (4, 43)",
    "INSERT INTO log (a) VALUES (1)",
    "INSERT INTO log (id, a) VALUES (9, 1)",
    "SELECT a FROM log",
    "UPDATE t SET a = 11 WHERE id = 1",
    "UPDATE t SET b = 12",
    "UPDATE t SET secret = 1 WHERE id = 1",
    "UPDATE t SET a = 13 WHERE secret = 1000",
    "UPDATE t SET a = secret WHERE id = 1",
    "UPDATE t SET a = b WHERE id = 1",
    "UPDATE t JOIN u ON u.id = t.id SET t.a = 14 WHERE u.id = 1",
    "UPDATE t JOIN u ON u.id = t.id SET t.secret = 14 WHERE u.id = 1",
    "UPDATE t JOIN u ON u.id = t.id SET t.a = u.secret",
    "DELETE FROM t WHERE id = 1",
    "DELETE FROM u WHERE secret = 7",
    "DELETE FROM u WHERE id = 2",
    "DELETE u FROM u JOIN t ON t.id = u.id WHERE t.secret = 1000",
    "DELETE u FROM u JOIN t ON t.id = u.id WHERE t.id = 1",
    "EXPLAIN SELECT secret FROM t",
)


class Side:
    """One server, as root and as two others."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self.port = port
        self.root = self._connect(stack, "root", "", None)
        for sql in DEFINITIONS:
            self.ask(self.root, sql)
        self.clerk = self._connect(stack, "clerk", "pw", "columns_of")

    def _connect(self, stack: ExitStack, user: str, password: str, database: str | None) -> Any:
        return stack.enter_context(
            pymysql.connect(host="127.0.0.1", port=self.port, user=user, password=password, database=database, autocommit=True)
        )

    def ask(self, connection: Any, sql: str) -> Any:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description is not None else cursor.rowcount

    def answer(self, sql: str) -> Any:
        try:
            return self.ask(self.clerk, sql)
        except pymysql.err.MySQLError as error:
            return error.args[0]

    def stored(self) -> Any:
        return [self.ask(self.root, f"SELECT * FROM {name} ORDER BY id") for name in ("t", "u", "log")]


@pytest.fixture
def sides(millrace: ServerThread, mariadb: MariaDB) -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:
        yield Side(millrace.port, stack), Side(mariadb.port, stack)
        for port in (millrace.port, mariadb.port):
            with pymysql.connect(host="127.0.0.1", port=port, user="root") as root:
                root.cursor().execute("DROP DATABASE columns_of")
                root.cursor().execute("DROP USER clerk, owner")


def test_columns_are_read_and_written_by_those_who_may(sides: tuple[Side, Side]) -> None:
    ours, theirs = sides
    for sql in STATEMENTS:
        answers = ours.answer(sql), theirs.answer(sql)
        assert answers[0] == answers[1], sql
        assert ours.stored() == theirs.stored(), sql


def test_no_way_to_ask_goes_around_it(sides: tuple[Side, Side]) -> None:
    ours, _ = sides
    options: dict[str, Any] = {"host": "127.0.0.1", "port": ours.port, "user": "clerk", "password": "pw", "database": "columns_of"}
    with mysql.connector.connect(**options) as connection:
        prepared = connection.cursor(prepared=True)
        for number in range(6):  # a query that repeats is answered from its view, and where its packet arrives
            prepared.execute("SELECT id, a FROM t WHERE id = ?", (1,))
            assert prepared.fetchall() == [(1, 10)], number
            for sql in ("SELECT secret FROM t WHERE id = ?", "SELECT id FROM t WHERE secret = ?", "UPDATE t SET secret = ? WHERE id = 1"):
                with pytest.raises(mysql.connector.Error) as raised:
                    connection.cursor(prepared=True).execute(sql, (1,))
                assert raised.value.errno == 1143, sql
    for _ in range(6):
        assert ours.ask(ours.root, "SELECT secret FROM t WHERE id = 1") == [(1000,)]
        assert ours.answer("SELECT secret FROM t WHERE id = 1") == 1143
        assert ours.answer("SELECT a FROM t WHERE id = 1") == [(10,)]
    # MariaDB wants more than the UPDATE of the column that is updated.
    assert ours.answer("INSERT INTO t (id, a) VALUES (1, 41) ON DUPLICATE KEY UPDATE a = 10, b = VALUES(a)") == 2
    for sql in ("SELECT id FROM t JOIN u USING (id, a)", "SELECT t.id FROM t NATURAL JOIN u"):
        assert ours.answer(sql) == 1143  # MariaDB compares columns that one may not read
    assert ours.answer("PREPARE p FROM 'SELECT secret FROM t'") == 1143
    assert ours.answer("CALL millrace.scan('SELECT secret FROM t', 0)") in (1142, 1143, 1210)
    ours.ask(ours.root, "REVOKE SELECT (a) ON t FROM clerk")
    assert ours.answer("SELECT a FROM t WHERE id = 1") == 1143
    assert ours.answer("SELECT id FROM t WHERE id = 1") == [(1,)]


def test_grants_are_shown_and_taken_back(sides: tuple[Side, Side]) -> None:
    ours, theirs = sides
    shown = "SELECT table_name, column_name, privilege_type, is_grantable FROM information_schema.column_privileges WHERE grantee LIKE '%clerk%' ORDER BY 1, 2, 3"
    seen = "SELECT table_name, column_name, ordinal_position, privileges FROM information_schema.columns WHERE table_schema = 'columns_of' AND table_name IN ('t', 'u', 'seen') ORDER BY 1, 3"
    for sql in (shown, seen, "SHOW TABLES"):
        assert ours.answer(sql) == theirs.answer(sql), sql
    for sql in ("SHOW COLUMNS FROM t", "DESCRIBE u"):
        assert [row[0] for row in ours.answer(sql)] == [row[0] for row in theirs.answer(sql)], sql
    for sql in (
        "REVOKE UPDATE (b) ON columns_of.t FROM clerk",
        "REVOKE SELECT ON columns_of.t FROM clerk",
        "GRANT INSERT ON columns_of.t TO clerk",
        "REVOKE INSERT (id) ON columns_of.t FROM clerk",
        "REVOKE ALL ON columns_of.v FROM clerk",
    ):
        for side in sides:
            side.ask(side.root, sql)
        assert ours.ask(ours.root, shown) == theirs.ask(theirs.root, shown), sql
        for query in ("SELECT id FROM t WHERE id = 1", "UPDATE t SET a = 1 WHERE 1 = 0", "UPDATE t SET b = 1", "INSERT INTO t VALUES (9, 9, 9, 9)", "SELECT id FROM v"):
            assert ours.answer(query) == theirs.answer(query), (sql, query)
        for side in sides:
            side.ask(side.root, "DELETE FROM t WHERE id = 9")
    grants = [row[0] for row in ours.ask(ours.root, "SHOW GRANTS FOR clerk")]
    assert "GRANT INSERT, INSERT (`a`), UPDATE (`a`), REFERENCES (`id`) ON `columns_of`.`t` TO `clerk`@`%`" in grants
    assert "GRANT SELECT (`id`), DELETE ON `columns_of`.`u` TO `clerk`@`%`" in grants


@pytest.mark.parametrize(
    "sql",
    [
        "GRANT SELECT (nothing) ON columns_of.t TO clerk",
        "GRANT SELECT (id) ON columns_of.missing TO clerk",
        "GRANT DELETE (id) ON columns_of.t TO clerk",
        "GRANT SELECT (id) ON columns_of.* TO clerk",
        "GRANT SELECT (nothing) ON columns_of.v TO clerk",
    ],
)
def test_what_is_no_column_is_not_granted(sides: tuple[Side, Side], sql: str) -> None:
    codes = []
    for side in sides:
        with pytest.raises(pymysql.err.MySQLError) as raised:
            side.ask(side.root, sql)
        codes.append(raised.value.args[0])
    assert codes[0] == codes[1]


def test_a_column_is_handed_on_by_who_has_it_with_grant_option(sides: tuple[Side, Side]) -> None:
    for side in sides:
        assert side.answer("GRANT SELECT (id) ON columns_of.t TO owner") in (1142, 1044)
        side.ask(side.root, "GRANT SELECT (id) ON columns_of.t TO clerk WITH GRANT OPTION")
        assert side.answer("GRANT SELECT (id) ON columns_of.t TO owner") == 0
        assert side.answer("GRANT SELECT (secret) ON columns_of.t TO owner") in (1142, 1143)


def test_definitions_need_the_columns_they_name(sides: tuple[Side, Side]) -> None:
    for side in sides:
        side.ask(side.root, "GRANT CREATE, CREATE VIEW, DROP, SELECT, INSERT ON columns_of.* TO owner")
        side.ask(side.root, "REVOKE SELECT ON columns_of.* FROM owner")
        side.ask(side.root, "CREATE DATABASE IF NOT EXISTS columns_own")
        side.ask(side.root, "GRANT ALL ON columns_own.* TO clerk")
    statements = (
        "CREATE VIEW columns_own.w AS SELECT id FROM columns_of.t",
        "CREATE VIEW columns_own.x AS SELECT secret FROM columns_of.t",
        "CREATE TABLE columns_own.copy AS SELECT id, a FROM columns_of.t",
        "CREATE TABLE columns_own.copy2 AS SELECT secret FROM columns_of.t",
        "SELECT * FROM columns_own.w ORDER BY id",
    )
    answers = [[side.answer(sql) for sql in statements] for side in sides]
    # MariaDB does not look at REFERENCES of columns.
    assert sides[0].answer("CREATE TABLE columns_own.good (id INT, FOREIGN KEY (id) REFERENCES columns_of.t (id))") == 0
    assert sides[0].answer("CREATE TABLE columns_own.bad (a INT, FOREIGN KEY (a) REFERENCES columns_of.u (id))") == 1142
    for side in sides:
        side.ask(side.root, "DROP DATABASE columns_own")
    for sql, ours, theirs in zip(statements, *answers):
        assert ours == theirs, sql
