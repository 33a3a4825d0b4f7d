"""Values at the edge of what a function or column takes: each has an answer or an error of MySQL's, none is error 1105."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from mysql_adapter.sessions.session import Session
from tests.wire.server import ServerThread


@pytest.fixture
def table(run: Any) -> str:
    run("DROP TABLE IF EXISTS edges")
    run("CREATE TABLE edges (a INT)")
    run("INSERT INTO edges VALUES (1), (2), (3)")
    return "edges"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELECT NTILE(0) OVER (ORDER BY a) FROM edges", 1210),
        ("SELECT NTILE(NULL) OVER (ORDER BY a) FROM edges", 1210),
        ("SELECT NTILE(a - 5) OVER (ORDER BY a) FROM edges", 1210),
        ("SELECT LAG(a, NULL) OVER (ORDER BY a) FROM edges", 1210),
        ("SELECT NTH_VALUE(a, NULL) OVER (ORDER BY a) FROM edges", 1210),
        ("SELECT NOW(7)", 1426),
        ("SELECT CURTIME(7)", 1426),
        ("SELECT SYSDATE(7)", 1426),
        ("SELECT ROW(1, 2)", 1241),
        ("SELECT ROW(1, 2) | 1", 1241),
        ("SELECT SLEEP(ROW(1, 2))", 1241),
        ("SELECT MAX(ROW(1, 2)) FROM edges", 1241),
        ("SELECT a FROM edges ORDER BY (a, 1)", 1241),
        ("UPDATE edges SET a = ROW(1, 2)", 1241),
        ("INSERT INTO edges VALUES (ROW(1, 2))", 1241),
        ("DELETE FROM information_schema.tables", 1044),
        ("UPDATE mysql.user SET user = 'x'", 1044),
        ("SELECT NTILE(MAX(a) OVER ()) OVER (ORDER BY a) FROM edges", 3593),
        ("CREATE TABLE wide (a INT(256))", 1439),
        ("CREATE TABLE wide (a DOUBLE(999999999999999999999, 0))", 1439),
        ("CREATE TABLE defaulted (a INT DEFAULT (?))", 1064),
        ("CREATE TABLE checked (a INT CHECK (a > ?))", 1064),
        ("SET @edge = REPEAT('9', 81) + 0.0; SET @edge = 99999999999999999999999999999999999999999999999999999999999999999;"
         " SELECT @edge * @edge", 1690),
        ("""SELECT JSON_UNQUOTE('"\\\\uc080\\\\ude0a"')""", 3141),
    ],
)
def test_what_is_out_of_range_has_its_own_error(run: Any, table: str, statement: str, code: int) -> None:
    with pytest.raises(pymysql.err.MySQLError) as caught:
        run(statement)
    assert caught.value.args[0] == code


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a, LAG(a) OVER (ORDER BY a) IN (SELECT a + 1 FROM edges) FROM edges", [(1, None), (2, 0), (3, 1)]),
        ("SELECT a, RANK() OVER (ORDER BY a) > ALL (SELECT a FROM edges WHERE a < 3) x FROM edges", [(1, 0), (2, 0), (3, 1)]),
        ("SELECT SUM(a), RANK() OVER (ORDER BY SUM(a)) IN (SELECT 1) FROM edges GROUP BY a", [(1, 1), (2, 0), (3, 0)]),
        ("SELECT DISTINCT LAG(a) OVER (ORDER BY a) NOT IN (SELECT 1) FROM edges", [(None,), (0,), (1,)]),
        ("SELECT CAST('1e111111111111111111111' AS DECIMAL(3, 0))", [(999,)]),
        ("SELECT COUNT(*) FROM (SELECT 1.5 d UNION SELECT 2) t WHERE d = '1e1000'", [(0,)]),
        (f"SELECT {'9' * 130} = {'9' * 65}", [(1,)]),
        ("SELECT FORMAT(TRUNCATE('1.7976931348623157E+308', -12), 1)", [("0",)]),
        ("SELECT HEX(CONCAT(@edge := 'x')), 1", [("78", 1)]),
        ("SELECT a, (SELECT SUM(a) FROM edges i WHERE i.a = o.a + 1 GROUP BY o.a) FROM edges o", [(1, 2), (2, 3), (3, None)]),
        ("SELECT STDDEV(f) FROM (SELECT 1.5e308 f UNION SELECT -1.5e308) t", [(1.5e308,)]),
        ("SELECT VARIANCE(f) > 1e308 FROM (SELECT 1.5e308 f UNION SELECT -1.5e308) t", [(1,)]),
    ],
)
def test_subqueries_read_window_functions_and_long_texts_are_assigned(run: Any, table: str, query: str, rows: list[Any]) -> None:
    assert sorted(run(query), key=repr) == sorted(rows, key=repr)


def test_what_is_stored_is_text(connection: Any) -> None:
    with pytest.raises(pymysql.err.MySQLError) as caught:
        connection.query(b"CREATE TABLE commented (a INT COMMENT 'a\xff')")
    assert caught.value.args[0] == 1300


def test_numbers_end_where_a_column_ends(run: Any) -> None:
    run("DROP TABLE IF EXISTS numbered")
    run("CREATE TABLE numbered (n BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
    run("INSERT INTO numbered VALUES (18446744073709551601)")
    run("INSERT INTO numbered VALUES (NULL)")
    run("INSERT INTO numbered VALUES (18446744073709551615)")
    with pytest.raises(pymysql.err.MySQLError) as caught:
        run("INSERT INTO numbered VALUES (NULL)")
    assert caught.value.args[0] == 1467
    assert run("SELECT n FROM numbered ORDER BY n") == [(18446744073709551601,), (18446744073709551602,), (18446744073709551615,)]


def test_a_double_counts_up(run: Any) -> None:
    run("DROP TABLE IF EXISTS numbered")
    run("CREATE TABLE numbered (n DOUBLE AUTO_INCREMENT PRIMARY KEY)")
    for value in ("NULL", "1.5", "NULL", "0"):
        run(f"INSERT INTO numbered VALUES ({value})")
    run("UPDATE numbered SET n = 10.5 WHERE n = 4")
    run("INSERT INTO numbered VALUES (NULL)")
    assert run("SELECT n FROM numbered ORDER BY n") == [(1.0,), (1.5,), (3.0,), (10.5,), (11.0,)]


def test_a_zero_stays_in_a_table_that_is_changed(run: Any) -> None:
    run("DROP TABLE IF EXISTS numbered")
    run("CREATE TABLE numbered (n INT AUTO_INCREMENT PRIMARY KEY, t CHAR(1))")
    run("INSERT INTO numbered VALUES (NULL, 'a'), (NULL, 'b')")
    run("UPDATE numbered SET n = 0 WHERE n = 1")
    run("ALTER TABLE numbered MODIFY t VARCHAR(9) NOT NULL")
    run("INSERT INTO numbered VALUES (NULL, 'c')")
    assert run("SELECT n, t FROM numbered ORDER BY n") == [(0, "a"), (2, "b"), (3, "c")]


def test_the_log_has_the_statement_that_failed_within(
    millrace: ServerThread, run: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Session, sql: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Session, "run", fail)
    with pytest.raises(pymysql.err.MySQLError) as caught:
        run("SELECT 'this one'")
    assert caught.value.args[0] == 1105
    assert "SELECT 'this one'" in caplog.text and "ZeroDivisionError" in caplog.text


def test_a_default_reads_what_the_other_columns_get(run: Any) -> None:
    run("DROP TABLE IF EXISTS defaulted")
    run("CREATE TABLE defaulted (a INT, b INT DEFAULT (a + 1), c INT DEFAULT (a + b))")
    run("INSERT INTO defaulted (a) VALUES (2)")
    run("INSERT INTO defaulted (a, b) VALUES (10, 20)")
    run("INSERT INTO defaulted VALUES (1, DEFAULT, DEFAULT), (5, 6, DEFAULT)")
    run("INSERT INTO defaulted (a) SELECT 100")
    assert run("SELECT * FROM defaulted ORDER BY a") == [(1, 2, 3), (2, 3, 5), (5, 6, 11), (10, 20, 30), (100, 101, 201)]


def test_columns_that_are_only_declared_come_before_those_of_the_query(run: Any) -> None:
    run("DROP TABLE IF EXISTS declared")
    run("CREATE TABLE declared (a VARCHAR(9) NOT NULL, b INT, `key` INT DEFAULT 3, PRIMARY KEY (a)) SELECT 'x' AS a, 1 AS c")
    assert run("SELECT * FROM declared") == [(None, 3, "x", 1)]


def test_a_new_name_belongs_to_the_database_in_use(run: Any) -> None:
    run("DROP DATABASE IF EXISTS elsewhere")
    run("CREATE DATABASE elsewhere")
    run("CREATE TABLE elsewhere.moved (a INT)")
    run("DROP TABLE IF EXISTS moved_here")
    run("ALTER TABLE elsewhere.moved RENAME moved_here")
    assert run("SELECT * FROM wire.moved_here") == []
    for statement in ("ALTER TABLE moved_here RENAME TO ``", "RENAME TABLE moved_here TO ``", "CREATE TABLE `` (a INT)"):
        with pytest.raises(pymysql.err.MySQLError) as caught:
            run(statement)
        assert caught.value.args[0] == 1103
