"""RAND() and UUID(): another value for every row, and never one that was kept."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

ROWS = 200


@pytest.fixture
def cursor(millrace: ServerThread) -> Any:
    connection = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS chance")
        cursor.execute("USE chance")
        cursor.execute("DROP TABLE IF EXISTS n")
        cursor.execute("CREATE TABLE n (id INT PRIMARY KEY, token CHAR(36) DEFAULT (UUID()))")
        cursor.execute("INSERT INTO n (id) VALUES " + ", ".join(f"({number})" for number in range(ROWS)))
        yield cursor


def column(cursor: Any, sql: str) -> list[Any]:
    cursor.execute(sql)
    return [row[0] for row in cursor.fetchall()]


def test_every_row_gets_a_value_of_its_own(cursor: Any) -> None:
    assert len(set(column(cursor, "SELECT token FROM n"))) == ROWS
    cursor.execute("UPDATE n SET token = UUID()")
    assert len(set(column(cursor, "SELECT token FROM n"))) == ROWS
    for drawn in ("RAND()", "UUID()", "UUID_SHORT()"):
        assert len(set(column(cursor, f"SELECT {drawn} FROM n"))) == ROWS
    cursor.execute("SELECT UUID(), UUID()")
    assert len(set(cursor.fetchone())) == 2


def test_order_by_rand_shuffles_each_time(cursor: Any) -> None:
    orders = [tuple(column(cursor, "SELECT id FROM n ORDER BY RAND()")) for _ in range(4)]
    assert len(set(orders)) == 4
    assert all(sorted(order) == list(range(ROWS)) for order in orders)
    assert len({tuple(column(cursor, "SELECT id FROM n ORDER BY RAND() LIMIT 10")) for _ in range(4)}) == 4


@pytest.mark.parametrize(
    "source", ["n WHERE RAND() < 0.5", "n JOIN n m ON m.id = n.id WHERE RAND() < 0.5", "n WHERE RAND() < 0.5 AND n.id >= 0"]
)
def test_a_condition_is_drawn_for_each_row_and_each_time(cursor: Any, source: str) -> None:
    samples = [tuple(column(cursor, f"SELECT n.id FROM {source}")) for _ in range(4)]
    assert len(set(samples)) == 4
    assert all(ROWS / 4 < len(sample) < ROWS * 3 / 4 for sample in samples), "one in 10^13 has as few or as many"


def test_a_number_drawn_in_a_derived_table_is_one_number(cursor: Any) -> None:
    """The usual way to pick a row at random."""
    query = "SELECT n.id FROM n JOIN (SELECT FLOOR(RAND() * (SELECT COUNT(*) FROM n)) AS id) one USING (id)"
    found = [column(cursor, query) for _ in range(20)]
    assert all(len(each) == 1 for each in found) and len(set(map(tuple, found))) > 1
    cursor.execute("SELECT drawn, drawn FROM (SELECT RAND() AS drawn FROM n) numbers")
    assert all(one == other for one, other in cursor.fetchall())


def test_what_is_drawn_beside_a_kept_row_is_not_kept(cursor: Any) -> None:
    assert len({column(cursor, "SELECT RAND(), id FROM n WHERE id = 7")[0] for _ in range(10)}) == 10


def test_rand_of_a_column_is_the_first_number_after_that_seed(cursor: Any) -> None:
    assert column(cursor, "SELECT RAND(id) FROM n WHERE id IN (1, 3) ORDER BY id") == [0.40540353712197724, 0.9057697559760601]


@pytest.mark.parametrize(
    "query",
    [
        "WITH w AS (SELECT id, RAND() AS r FROM n) SELECT COUNT(*) FROM w a JOIN w b ON a.id = b.id AND a.r = b.r",
        "WITH w (a, b) AS (SELECT id, UUID() FROM n) SELECT COUNT(*) FROM w x JOIN w y USING (a, b)",
        "WITH w AS (SELECT id, RAND() r FROM n), v AS (SELECT * FROM w) SELECT COUNT(*) FROM w JOIN v ON w.id = v.id AND w.r = v.r",
        f"WITH w AS (SELECT RAND() AS r) SELECT {ROWS} * (a.r = b.r) FROM w a, w b",
        f"WITH w AS (SELECT id FROM n WHERE RAND() < 0.5) SELECT {ROWS} * ((SELECT COUNT(*) FROM w) = (SELECT COUNT(*) FROM w))",
        "WITH RECURSIVE w AS (SELECT RAND() AS r), c AS (SELECT 1 AS k, r FROM w UNION ALL SELECT k + 1, r FROM c WHERE k < 200)"
        " SELECT COUNT(*) FROM c JOIN w ON c.r = w.r",
    ],
)
def test_a_common_table_is_drawn_once_for_all_who_read_it(cursor: Any, query: str) -> None:
    for _ in range(3):
        assert column(cursor, query) == [ROWS]


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        ("SELECT SUM(m.id IS NULL) FROM n LEFT JOIN n m ON m.id = n.id AND RAND() < 0.5", 50, 150),
        ("SELECT SUM(m.id IS NULL) FROM n LEFT JOIN n m ON m.id = n.id AND RAND() * 2 < m.id / m.id", 50, 150),
        ("SELECT COUNT(*) FROM n LEFT JOIN n m ON RAND() < 0.5 WHERE m.id IS NULL", 0, 0),
        ("SELECT COUNT(DISTINCT n.id) FROM n LEFT JOIN n m ON n.id + FLOOR(RAND() * 2) = m.id", ROWS, ROWS),
        ("SELECT COUNT(*) FROM n JOIN (SELECT 1 AS x UNION SELECT 2) two WHERE RAND() < two.x / 4", 90, 210),
    ],
)
def test_a_pair_of_rows_is_drawn_once(cursor: Any, query: str, least: int, most: int) -> None:
    for _ in range(3):
        assert least <= column(cursor, query)[0] <= most, "one in 10^10 is beyond"


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT COUNT(DISTINCT x) FROM (SELECT UUID() AS x UNION ALL SELECT UUID()) two", 2),
        ("SELECT COUNT(*) FROM (SELECT RAND() AS x FROM n UNION SELECT RAND() FROM n) both_of_them", 2 * ROWS),
        ("SELECT COUNT(*) FROM (SELECT id, RAND() AS r FROM n) a JOIN (SELECT id, RAND() AS r FROM n) b ON a.id = b.id AND a.r = b.r", 0),
    ],
)
def test_what_looks_the_same_is_not_the_same_draw(cursor: Any, query: str, count: int) -> None:
    assert column(cursor, query) == [count]


def test_samples_that_look_the_same_differ(cursor: Any) -> None:
    sample = "(SELECT id FROM n WHERE RAND() < 0.5)"
    both = column(cursor, f"SELECT COUNT(*) FROM {sample} a JOIN {sample} b ON a.id = b.id")[0]
    assert ROWS / 20 < both < ROWS * 9 / 20, "one in 10^10 is beyond"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT RAND() AS r, id FROM n ORDER BY r",
        "SELECT RAND() AS r, id FROM n ORDER BY 1 LIMIT 20",
        "SELECT RAND() AS r, n.id FROM n JOIN n m ON m.id = n.id ORDER BY r, n.id",
        "SELECT RAND() AS r, COUNT(*) FROM n GROUP BY id ORDER BY r",
        "SELECT DISTINCT RAND() AS r, id FROM n ORDER BY r",
        "SELECT r FROM (SELECT RAND() AS r FROM n ORDER BY r LIMIT 20) q ORDER BY r",
        "SELECT RAND() AS r FROM n UNION ALL SELECT RAND() FROM n ORDER BY r",
        "SELECT RAND(7) AS r, id FROM n ORDER BY r",
    ],
)
def test_rows_are_in_the_order_of_what_was_drawn(cursor: Any, query: str) -> None:
    found = column(cursor, query)
    assert found == sorted(found) and len(set(found)) == len(found)


SEEDED = [
    "SELECT RAND(5)",
    "SELECT RAND(5), RAND(5), RAND(1 + 4)",
    "SELECT RAND(NULL), RAND(0), RAND(-1), RAND('7'), RAND(2.5), RAND(4294967297), RAND(1e30)",
    "SELECT id, RAND(5), RAND(6) FROM n",
    "SELECT id, RAND(5) FROM n WHERE id < 9 ORDER BY id DESC",
    "SELECT id, RAND(5) FROM n WHERE id < 9 ORDER BY id % 3 DESC, id LIMIT 4",
    "SELECT id, RAND(5) AS r FROM n WHERE id < 9 ORDER BY r",
    "SELECT id FROM n ORDER BY RAND(5) LIMIT 8",
    "SELECT id FROM n ORDER BY RAND(3), id",
    "SELECT id FROM n WHERE RAND(5) < 0.2",
    "SELECT RAND(5) UNION ALL SELECT RAND(5)",
    "SELECT r FROM (SELECT RAND(5) AS r FROM n WHERE id < 3) q",
    "SELECT n.id, RAND(5) FROM n JOIN n m ON m.id = n.id WHERE n.id < 3",
    "SELECT id % 3, ROUND(SUM(RAND(5)), 9) FROM n GROUP BY id % 3 ORDER BY 1",
    "SELECT * FROM seeded",
]
SEEDING = [
    "CREATE TABLE seeded (id INT PRIMARY KEY, r DOUBLE)",
    "INSERT INTO seeded VALUES (1, RAND(5)), (2, RAND(5)), (3, 1 + RAND(6))",
    "INSERT INTO seeded SELECT id + 10, RAND(5) FROM n WHERE id < 3",
    "INSERT INTO seeded VALUES (1, 0), (2, 0) ON DUPLICATE KEY UPDATE r = RAND(8)",
    "UPDATE seeded SET r = RAND(9) WHERE id > 11",
]


def test_rand_of_a_constant_is_the_sequence_that_mariadb_gives(cursor: Any, mariadb: MariaDB) -> None:
    cursor.execute("DROP TABLE IF EXISTS seeded")
    with mariadb.connect(mariadb.fresh_database()) as connection, connection.cursor() as other:
        other.execute("CREATE TABLE n (id INT PRIMARY KEY)")
        other.execute("INSERT INTO n (id) VALUES " + ", ".join(f"({number})" for number in range(ROWS)))
        for each in (cursor, other):
            for sql in SEEDING:
                each.execute(sql)
        for sql in SEEDED * 2:
            other.execute(sql)
            cursor.execute(sql)
            assert cursor.fetchall() == other.fetchall(), sql


def test_each_execution_begins_with_the_first_number_of_its_seed(cursor: Any) -> None:
    cursor.execute("PREPARE p FROM 'SELECT RAND(?) FROM n WHERE id < 2'")
    cursor.execute("SET @five = 5, @six = 6")
    for name, first in (("five", 0.40613597483014313), ("six", 0.6563190842571847), ("five", 0.40613597483014313)):
        assert column(cursor, f"EXECUTE p USING @{name}")[0] == first
