"""RAND() and UUID(): another value for every row, and never one that was kept."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

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
