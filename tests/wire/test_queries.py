"""SELECTs over several tables through a driver: computed tables, prepared statements, transactions."""

from __future__ import annotations

from typing import Any

import mysql.connector
import pymysql
import pytest

from tests.wire.server import ServerThread


@pytest.fixture
def cursor(millrace: ServerThread) -> Any:
    connection = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS queries")
        cursor.execute("USE queries")
        for name in ("a", "b"):
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, x INT, t VARCHAR(10), KEY k (x))")
            cursor.execute(f"INSERT INTO {name} VALUES (1, 1, 'one'), (2, 1, 'two'), (3, NULL, 'three')")
        yield cursor


def test_tables_of_information_schema_are_joined(cursor: Any) -> None:
    cursor.execute(
        "SELECT c.table_name, COUNT(*) FROM information_schema.tables t JOIN information_schema.columns c"
        " ON c.table_schema = t.table_schema AND c.table_name = t.table_name"
        " WHERE t.table_schema = 'queries' GROUP BY c.table_name ORDER BY 1"
    )
    assert cursor.fetchall() == (("a", 3), ("b", 3))


def test_computed_and_stored_tables_are_joined(cursor: Any) -> None:
    cursor.execute(
        "SELECT a.t, c.column_name FROM a JOIN information_schema.columns c ON c.ordinal_position = a.id"
        " WHERE c.table_schema = 'queries' AND c.table_name = 'b' ORDER BY a.id"
    )
    assert cursor.fetchall() == (("one", "id"), ("two", "x"), ("three", "t"))


def test_insert_takes_rows_of_a_join(cursor: Any) -> None:
    cursor.execute("INSERT INTO b SELECT a.id + 10, b.x, CONCAT(a.t, b.t) FROM a JOIN b ON b.id = a.id")
    assert cursor.rowcount == 3
    cursor.execute("SELECT b.t FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.id + 10 = b.id) ORDER BY b.id")
    assert cursor.fetchall() == (("oneone",), ("twotwo",), ("threethree",))


def test_a_join_sees_what_its_transaction_wrote(cursor: Any) -> None:
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO a VALUES (4, 7, 'four')")
    cursor.execute("UPDATE b SET x = 7 WHERE id = 2")
    cursor.execute("DELETE FROM b WHERE id = 1")
    cursor.execute("SELECT a.id, b.id FROM a JOIN b ON a.x = b.x ORDER BY 1, 2")
    assert cursor.fetchall() == ((4, 2),)
    cursor.execute("ROLLBACK")
    cursor.execute("SELECT COUNT(*) FROM a JOIN b ON a.x = b.x")
    assert cursor.fetchall() == ((4,),)


def test_columns_of_a_join_are_described(cursor: Any) -> None:
    cursor.execute("SELECT a.id, b.t AS name, COUNT(*) FROM a LEFT JOIN b ON b.id = a.x GROUP BY a.id, b.t")
    assert [each[0] for each in cursor.description] == ["id", "name", "COUNT(*)"]
    assert [each[6] for each in cursor.description] == [False, True, False]


def test_prepared_joins_take_parameters_anywhere(millrace: ServerThread, cursor: Any) -> None:
    connection = mysql.connector.connect(
        host="127.0.0.1", port=millrace.port, user="root", database="queries", use_pure=True
    )
    with connection, connection.cursor(prepared=True) as prepared:
        sql = (
            "SELECT a.id, ? FROM a JOIN b ON b.x = a.x WHERE a.id = ? AND b.id > ?"
            " AND EXISTS (SELECT 1 FROM b c WHERE c.id = a.id AND c.t = ?) ORDER BY b.id LIMIT ?"
        )
        prepared.execute(sql, (5, 1, 1, "one", 10))
        assert prepared.fetchall() == [(1, 5)]
        prepared.execute(sql, (6, 2, 0, "two", 1))
        assert prepared.fetchall() == [(2, 6)]


def test_json_is_gathered_over_joins(cursor: Any) -> None:
    cursor.execute("SELECT JSON_ARRAYAGG(b.t), JSON_OBJECTAGG(a.id, b.id) FROM a JOIN b ON b.id = a.x + 1")
    assert cursor.fetchall() == (('["two", "two"]', '{"1": 2, "2": 2}'),)


def test_views_are_described_like_tables(cursor: Any) -> None:
    cursor.execute("CREATE OR REPLACE VIEW v AS SELECT a.id, a.t AS name, COUNT(b.id) AS n FROM a LEFT JOIN b ON b.x = a.x GROUP BY a.id")
    cursor.execute("SELECT name, n FROM v WHERE id = 1")
    assert cursor.fetchall() == (("one", 2),)
    cursor.execute("SHOW FULL TABLES")
    assert cursor.fetchall() == (("a", "BASE TABLE"), ("b", "BASE TABLE"), ("v", "VIEW"))
    cursor.execute("DESCRIBE v")
    assert [row[:3] for row in cursor.fetchall()] == [("id", "int", "NO"), ("name", "varchar(10)", "YES"), ("n", "bigint", "NO")]
    cursor.execute("SHOW CREATE VIEW v")
    assert cursor.fetchone()[1].endswith("ON b.x = a.x GROUP BY a.id")
    cursor.execute("SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = 'queries'")
    assert cursor.fetchall()[0][0] == "v"
    cursor.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'v' ORDER BY ordinal_position")
    assert cursor.fetchall() == (("id",), ("name",), ("n",))
    cursor.execute("DROP VIEW v")
    with pytest.raises(pymysql.err.ProgrammingError):
        cursor.execute("SELECT * FROM v")


def test_a_limit_inside_may_be_a_parameter(millrace: ServerThread, cursor: Any) -> None:
    connection = mysql.connector.connect(
        host="127.0.0.1", port=millrace.port, user="root", database="queries", use_pure=True
    )
    with connection, connection.cursor(prepared=True) as prepared:
        sql = "SELECT b.t FROM (SELECT id FROM a WHERE id > ? ORDER BY id LIMIT ?) d JOIN b ON b.id = d.id ORDER BY b.id"
        prepared.execute(sql, (0, 1))
        assert prepared.fetchall() == [("one",)]
        prepared.execute(sql, (1, 5))
        assert prepared.fetchall() == [("two",), ("three",)]


def test_recursion_ends_where_the_session_says(run: Any) -> None:
    numbers = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 20) SELECT COUNT(*) FROM r"
    assert run(numbers) == [(20,)]
    assert "recursively" in str(run(f"EXPLAIN FORMAT=TREE {numbers}"))
    run("SET cte_max_recursion_depth = 10")
    with pytest.raises(pymysql.err.MySQLError, match="aborted after 11 iterations") as error:
        run(numbers)
    assert error.value.args[0] == 3636


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("SELECT n FROM r", 3573),
        ("SELECT n FROM r UNION ALL SELECT 1", 3574),
        ("SELECT 1 AS n UNION ALL SELECT COUNT(*) FROM r", 3575),
        ("SELECT 1 AS n UNION ALL SELECT 2 FROM (SELECT 1) x LEFT JOIN r ON 1", 3576),
        ("SELECT 1 AS n UNION ALL SELECT a.n FROM r a, r b", 3577),
        ("SELECT 1 AS n UNION ALL SELECT 2 WHERE 1 IN (SELECT n FROM r)", 3577),
    ],
)
def test_recursion_that_mysql_does_not_allow_is_refused(run: Any, part: str, code: int) -> None:
    with pytest.raises(pymysql.err.MySQLError) as error:
        run(f"WITH RECURSIVE r AS ({part}) SELECT * FROM r")
    assert error.value.args[0] == code


def test_documents_are_ordered_as_numbers_also_from_a_view(cursor: Any) -> None:
    cursor.execute("DROP TABLE IF EXISTS documents")
    cursor.execute("CREATE TABLE documents (id INT PRIMARY KEY, g INT, d JSON)")
    cursor.execute("INSERT INTO documents VALUES " + ", ".join(f"({n}, 1, JSON_OBJECT('n', {n}))" for n in range(1, 31)))
    for _ in range(4):  # evaluated, then from a view that keeps some rows
        cursor.execute("SELECT id FROM documents WHERE g = 1 ORDER BY d->'$.n' LIMIT 3")
        assert cursor.fetchall() == ((1,), (2,), (3,))
        cursor.execute("SELECT id FROM documents WHERE g = 1 ORDER BY d->'$.n' DESC LIMIT 3")
        assert cursor.fetchall() == ((30,), (29,), (28,))
        cursor.execute("SELECT MAX(d->'$.n'), MIN(JSON_EXTRACT(d, '$.n')) FROM documents WHERE g = 1")
        assert cursor.fetchall() == (("30", "1"),)
