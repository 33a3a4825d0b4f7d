"""Whose privileges count behind a view, beside MariaDB: for reading and for writing, through views of views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

DEFINITIONS = (
    "DROP DATABASE IF EXISTS view_shop", "DROP DATABASE IF EXISTS view_own", "CREATE DATABASE view_shop", "CREATE DATABASE view_own",
    "DROP USER IF EXISTS maker, reader", "CREATE USER maker IDENTIFIED BY 'pw'", "CREATE USER reader IDENTIFIED BY 'pw'",
    "CREATE TABLE view_shop.t (id INT PRIMARY KEY, x INT)", "INSERT INTO view_shop.t VALUES (1, 1), (2, 2)",
    "CREATE TABLE view_shop.u (id INT PRIMARY KEY, y INT)", "INSERT INTO view_shop.u VALUES (1, 10)",
    "GRANT ALL ON view_own.* TO maker", "GRANT SELECT ON view_shop.t TO maker", "GRANT SELECT, UPDATE (y) ON view_shop.u TO maker",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON view_own.* TO reader",
)  # fmt: skip
BY_MAKER = (
    "CREATE VIEW view_own.v AS SELECT id, x FROM view_shop.t",
    "CREATE SQL SECURITY INVOKER VIEW view_own.w AS SELECT id, x FROM view_shop.t",
    "CREATE VIEW view_own.vw AS SELECT id, x FROM view_own.w",
    "CREATE VIEW view_own.vv AS SELECT id, x FROM view_own.v",
    "CREATE VIEW view_own.uv AS SELECT id, y FROM view_shop.u",
)
STATEMENTS = (
    "SELECT * FROM view_own.v ORDER BY id", "SELECT * FROM view_own.w ORDER BY id", "SELECT * FROM view_own.vw ORDER BY id",
    "INSERT INTO view_own.v VALUES (3, 3)", "REPLACE INTO view_own.v VALUES (1, 9)", "UPDATE view_own.v SET x = 5", "DELETE FROM view_own.v WHERE id = 1",
    "INSERT INTO view_own.w VALUES (4, 4)", "UPDATE view_own.vw SET x = 6", "DELETE FROM view_own.vv WHERE id = 2",
    "UPDATE view_own.v JOIN view_own.uv ON uv.id = v.id SET v.x = 7", "UPDATE view_own.uv SET y = y + 1 WHERE id = 1",
        "WITH v AS (SELECT id FROM view_own.v) SELECT COUNT(*) FROM v",
)  # fmt: skip


class Server:
    def __init__(self, port: int, stack: ExitStack) -> None:
        connections = {}
        for user in ("root", "maker", "reader"):
            password = "" if user == "root" else "pw"
            connections[user] = stack.enter_context(pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, autocommit=True)).cursor()
            if user == "root":
                for sql in DEFINITIONS:
                    connections[user].execute(sql)
        self._cursors = connections

    def ask(self, user: str, sql: str) -> Any:
        cursor = self._cursors[user]
        try:
            count = cursor.execute(sql)
            return cursor.fetchall() if cursor.description is not None else count
        except pymysql.err.MySQLError as error:
            return error.args[0]

    @property
    def stored(self) -> Any:
        return self.ask("root", "SELECT * FROM view_shop.t ORDER BY id"), self.ask("root", "SELECT * FROM view_shop.u ORDER BY id")


@pytest.fixture
def servers(millrace: ServerThread, mariadb: MariaDB) -> Iterator[tuple[Server, Server]]:
    with ExitStack() as stack:
        found = Server(millrace.port, stack), Server(mariadb.port, stack)
        yield found
        for each in found:
            for sql in ("DROP DATABASE view_shop", "DROP DATABASE view_own", "DROP USER maker, reader"):
                each.ask("root", sql)


def test_nobody_writes_through_a_view_what_its_definer_may_not(servers: tuple[Server, Server]) -> None:
    ours, theirs = servers
    for sql in BY_MAKER:
        assert ours.ask("maker", sql) == theirs.ask("maker", sql) == 0, sql
    for granted in ("", "GRANT UPDATE ON view_shop.t TO maker", "GRANT ALL ON view_shop.t TO reader"):
        if granted:
            assert ours.ask("root", granted) == theirs.ask("root", granted) == 0
        for user in ("maker", "reader"):
            for sql in STATEMENTS:
                assert ours.ask(user, sql) == theirs.ask(user, sql), (granted, user, sql)
                assert ours.stored == theirs.stored, (granted, user, sql)
    # MariaDB does not ask for the definer's UPDATE of the single column.
    assert ours.ask("maker", "UPDATE view_own.uv SET id = 9 WHERE id = 1") == 1356


def test_a_common_table_expression_does_not_hide_a_view_from_the_check(servers: tuple[Server, Server]) -> None:
    for server in servers:
        server.ask("root", "CREATE VIEW view_shop.secret AS SELECT id FROM view_shop.t")
        server.ask("root", "GRANT SELECT ON view_shop.u TO reader")
        assert server.ask("reader", "USE view_shop") == 0
        assert server.ask("reader", "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret") == 1142


@pytest.mark.parametrize("mode", ["", "ANSI_QUOTES,PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE,NO_BACKSLASH_ESCAPES"])
def test_statements_are_read_in_the_mode_of_the_session(servers: tuple[Server, Server], mode: str) -> None:
    for server in servers:
        server.ask("root", "CREATE VIEW view_shop.some AS SELECT id, x FROM view_shop.t")
        server.ask("root", "GRANT SELECT ON view_shop.some TO reader")
    for user in ("root", "reader"):
        for sql in (f"SET sql_mode = '{mode}'", "SELECT id || 'x' FROM view_shop.some ORDER BY id", 'SELECT "id", NOT 1 BETWEEN 0 AND 1 FROM view_shop.some'):
            ours, theirs = (server.ask(user, sql) for server in servers)
            assert ours == theirs, (user, sql)
