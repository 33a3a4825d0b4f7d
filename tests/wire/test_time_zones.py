"""TIMESTAMPs in sessions of other time zones, beside MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

QUERIES = [
    "SELECT ts, DATE(ts), HOUR(ts), CONCAT(ts, '') FROM t ORDER BY id",
    "SELECT id FROM t WHERE ts = '2024-06-01 12:00:00'",
    "SELECT id FROM t WHERE ts > '2024-06-01 12:00:00' ORDER BY id",
    "SELECT id FROM t WHERE '2024-06-01 12:00:00' >= ts ORDER BY id",
    "SELECT id FROM t WHERE ts BETWEEN '2024-01-01' AND '2024-06-01 12:00:00' ORDER BY id",
    "SELECT id FROM t WHERE ts IN ('2024-06-01 12:00:00', '2024-12-31 23:30:00') ORDER BY id",
    "SELECT id FROM t WHERE ts = dt ORDER BY id",
    "SELECT id FROM t WHERE DATE(ts) = '2024-12-31' ORDER BY id",
    "SELECT ts + INTERVAL 1 DAY, TIMESTAMPDIFF(HOUR, ts, dt) FROM t ORDER BY id",
    "SELECT UNIX_TIMESTAMP(ts), UNIX_TIMESTAMP(dt) FROM t ORDER BY id",
    "SELECT FROM_UNIXTIME(86400), FROM_UNIXTIME(86400, '%Y-%m-%d %H')",
    "SELECT MAX(ts), MIN(dt), COUNT(DISTINCT ts) FROM t",
    "SELECT DATE(MAX(ts)), GROUP_CONCAT(ts ORDER BY ts) FROM t",
    "SELECT DATE(ts) d, COUNT(*) FROM t GROUP BY DATE(ts) ORDER BY d",
    "SELECT ts, COUNT(*) FROM t GROUP BY ts HAVING ts > '2024-06-01 12:00:00' ORDER BY ts",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.ts = b.ts ORDER BY 1, 2",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.ts = b.dt ORDER BY 1, 2",
    "SELECT id FROM t WHERE ts IN (SELECT ts FROM t WHERE id < 3) ORDER BY id",
    "SELECT id FROM t WHERE ts IN (SELECT dt FROM t) ORDER BY id",
    "SELECT id FROM t WHERE ts = (SELECT MAX(ts) FROM t)",
    "SELECT IF(id = 1, ts, NULL), COALESCE(ts, '2020-01-01') FROM t ORDER BY id",
    "SELECT YEAR(x) FROM (SELECT ts AS x FROM t) s ORDER BY 1",
    "SELECT CASE WHEN ts < '2024-06-01 12:00:00' THEN 'before' ELSE 'after' END FROM t ORDER BY id",
    "SELECT CONVERT_TZ('2024-06-01 12:00:00', '+00:00', '+05:30')",
    "SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), NOW())",
    "SELECT COUNT(*) FROM t WHERE made BETWEEN NOW() - INTERVAL 1 HOUR AND NOW() + INTERVAL 1 SECOND",
    "SELECT ABS(TIMESTAMPDIFF(SECOND, made, NOW())) < 3600, ABS(TIMESTAMPDIFF(SECOND, made_dt, NOW())) < 3600 FROM t",
    "SELECT ts FROM t UNION SELECT dt FROM t ORDER BY 1",
    "SELECT ts AS x, (ts), (ts) AS y, dt AS z FROM t ORDER BY x, id",
    "SELECT a.ts AS x, b.dt AS y FROM t a JOIN t b ON b.id = a.id WHERE a.ts > '2024-03-01' ORDER BY x, a.id",
    "SELECT ts AS x, COUNT(*) FROM t GROUP BY x HAVING x > '2024-06-01 12:00:00' ORDER BY x",
    "SELECT x, HOUR(x) FROM (SELECT (ts) AS x FROM t) s ORDER BY x",
]  # fmt: skip

CHANGES = [
    "UPDATE t a JOIN t b ON b.id = a.id SET a.dt = b.ts WHERE a.id < 3",
    "UPDATE t a JOIN t b ON b.id = a.id SET a.ts = b.dt, a.made = b.made WHERE a.id = 2",
    "UPDATE t a JOIN t b ON b.id = a.id SET a.ts = b.ts + INTERVAL 1 HOUR",
    "UPDATE t a JOIN t b ON b.id = a.id + 1 SET a.ts = (b.ts), a.dt = (b.ts) WHERE b.ts > '2024-02-01'",
    "UPDATE t a JOIN t b ON b.id = a.id SET a.ts = '2024-07-01 21:00:00' WHERE a.id = 1",
    "UPDATE t SET dt = (ts), ts = (dt) WHERE id = 0",
    "UPDATE t SET ts = (SELECT MAX(dt) FROM (SELECT dt FROM t) s) WHERE id = 4",
    "INSERT INTO t (id, ts, dt) SELECT id + 10, dt AS x, ts AS y FROM t",
    "DELETE a FROM t a JOIN t b ON b.id = a.id WHERE b.ts > '2024-12-01'",
]

Cursor = Any


@pytest.fixture(params=("+00:00", "+05:30", "-11:00", "+02:00"))
def cursors(request: pytest.FixtureRequest, millrace: ServerThread, mariadb: MariaDB) -> Iterator[tuple[Cursor, Cursor]]:
    found = []
    for port in (millrace.port, mariadb.port):
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE IF NOT EXISTS zones")
        cursor.execute("USE zones")
        cursor.execute("SET time_zone = %s", (request.param,))
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NULL, dt DATETIME, made TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
            " made_dt DATETIME DEFAULT CURRENT_TIMESTAMP, KEY (ts))"
        )
        rows = ("2024-06-01 12:00:00", "2024-12-31 23:30:00", "2024-01-01 00:30:00", "2024-06-01 12:00:00", None)
        for number, text in enumerate(rows):
            cursor.execute("INSERT INTO t (id, ts, dt) VALUES (%s, %s, %s)", (number, text, "2024-06-01 12:00:00"))
        cursor.execute("UPDATE t SET dt = ts WHERE id = 2")
        cursor.execute("SET time_zone = '-03:00'")
        cursor.execute("UPDATE t SET ts = dt + INTERVAL 1 MINUTE WHERE id = 3")
        cursor.execute("SET time_zone = %s", (request.param,))
        found.append(cursor)
    yield found[0], found[1]
    for cursor in found:
        cursor.connection.close()


def test_expressions_see_the_time_of_the_session(cursors: tuple[Cursor, Cursor]) -> None:
    ours, theirs = cursors
    for sql in QUERIES:
        answers = []
        for cursor in (ours, theirs):
            cursor.execute(sql)
            answers.append([tuple(map(str, row)) for row in cursor.fetchall()])
        assert answers[0] == answers[1], sql


def test_a_changed_type_keeps_the_time_that_the_session_sees(cursors: tuple[Cursor, Cursor]) -> None:
    answers = []
    for cursor in cursors:
        cursor.execute("ALTER TABLE t MODIFY dt TIMESTAMP NULL, MODIFY ts DATETIME, MODIFY made_dt VARCHAR(30)")
        cursor.execute("SELECT id, ts, dt FROM t ORDER BY id")
        here = list(cursor.fetchall())
        cursor.execute("ALTER TABLE t MODIFY dt VARCHAR(30)")
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SELECT id, ts, dt FROM t ORDER BY id")
        answers.append((here, list(cursor.fetchall())))
    assert answers[0] == answers[1]


def test_rows_are_changed_by_the_time_of_the_session(cursors: tuple[Cursor, Cursor]) -> None:
    for sql in CHANGES:
        ours, theirs = (cursor.execute(sql) for cursor in cursors)
        assert ours == theirs, sql
        for cursor in cursors:
            cursor.execute("SELECT id, ts, dt FROM t ORDER BY id")
        assert cursors[0].fetchall() == cursors[1].fetchall(), sql


def test_a_timestamp_under_another_name_is_still_one(cursors: tuple[Cursor, Cursor]) -> None:
    for sql in ("SELECT ts AS x, dt AS y FROM t", "SELECT a.ts AS x, b.dt AS y FROM t a JOIN t b ON b.id = a.id"):
        for cursor in cursors:
            cursor.execute(sql)
        assert cursors[0].description == cursors[1].description


GENERATED = (
    "CREATE TABLE g (id INT PRIMARY KEY, a INT, ts TIMESTAMP NULL, made DATETIME AS (FROM_UNIXTIME(a)), hour INT AS (HOUR(ts)),"
    " day VARCHAR(30) AS (DATE_FORMAT(made, '%d %H')), later TIMESTAMP AS (ts + INTERVAL 1 HOUR), seconds BIGINT AS (UNIX_TIMESTAMP(ts)), plain INT AS (a + 1),"
    " started DATETIME DEFAULT (FROM_UNIXTIME(86400)))"
)
GENERATED_QUERIES = (
    "SELECT * FROM g ORDER BY id",
    "SELECT made, later, g.hour FROM g ORDER BY made DESC, id",
    "SELECT g.made, COUNT(*) FROM g GROUP BY made ORDER BY made",
    "SELECT id FROM g WHERE made > '1970-01-02' ORDER BY id",
    "SELECT x.id, y.made, y.hour, y.plain FROM g x LEFT JOIN g y ON y.id = x.id + 1 ORDER BY x.id",
    "SELECT d FROM (SELECT day AS d FROM g) s ORDER BY d",
)


def test_generated_columns_and_defaults_are_of_the_session_s_zone(cursors: tuple[Cursor, Cursor]) -> None:
    """VIRTUAL columns of who reads, defaults of who writes. STORED ones are of who writes, too; MariaDB refuses them."""
    for cursor in cursors:
        zone = _rows(cursor, "SELECT @@time_zone")[0][0]
        cursor.execute("DROP TABLE IF EXISTS g")
        cursor.execute(GENERATED)
        for number, writer in enumerate((zone, "+09:00", "+00:00")):
            cursor.execute("SET time_zone = %s", (writer,))
            cursor.execute("INSERT INTO g (id, a, ts) VALUES (%s, %s, '2024-06-01 23:30:00')", (number, number * 40_000))
        cursor.execute("SET time_zone = %s", (zone,))
    for reader in ("", "SET time_zone = '-05:00'", "SET time_zone = '+00:00'"):
        for sql in GENERATED_QUERIES:
            answers = []
            for cursor in cursors:
                if reader:
                    cursor.execute(reader)
                answers.append([_rows(cursor, sql) for _ in range(3)])
            assert answers[0] == answers[1], (reader, sql)
    for sql in ("SET time_zone = '+10:00'", "UPDATE g SET a = a + 5 WHERE made = '1970-01-01 10:00:00'", "DELETE FROM g WHERE hour < 3"):
        counts = [cursor.execute(sql) for cursor in cursors]
        assert counts[0] == counts[1], sql
        assert _rows(cursors[0], GENERATED_QUERIES[0]) == _rows(cursors[1], GENERATED_QUERIES[0]), sql
    ours = cursors[0]
    ours.execute("DROP TABLE g")
    ours.execute("CREATE TABLE g (id INT PRIMARY KEY, a INT, made DATETIME AS (FROM_UNIXTIME(a)) STORED)")
    ours.execute("INSERT INTO g (id, a) VALUES (1, 0)")
    ours.execute("SET time_zone = '-05:00'")
    ours.execute("INSERT INTO g (id, a) VALUES (2, 86400)")
    assert [str(row[0]) for row in _rows(ours, "SELECT made FROM g ORDER BY id")] == ["1970-01-01 10:00:00", "1970-01-01 19:00:00"]
    for cursor in cursors:
        cursor.execute("DROP TABLE g")


def _rows(cursor: Cursor, sql: str) -> list[Any]:
    cursor.execute(sql)
    return list(cursor.fetchall())
