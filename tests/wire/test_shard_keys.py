"""Views of several workers whose tables are joined by numbers of different types: a key is found wherever it lives, before and after a view answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.wire.worker_server import worker_server

QUERIES = (
    "SELECT a.id, b.id FROM a JOIN b ON a.n = b.d",
    "SELECT a.id, b.id FROM b LEFT JOIN a ON a.n = b.d",
    "SELECT a.id, b.id FROM a LEFT JOIN b ON a.n = b.d",
    "SELECT a.id, b.id FROM a JOIN b ON a.n = b.e",
    "SELECT x.id, y.id FROM b x JOIN b y ON x.d = y.e",
    "SELECT b.id FROM b WHERE EXISTS (SELECT 1 FROM a WHERE b.d = a.n AND b.m = a.m)",
    "SELECT b.id, g.c FROM b JOIN (SELECT n, COUNT(*) c FROM a GROUP BY n) g ON g.n = b.d",
)


@pytest.fixture(scope="module")
def cursor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with (
        worker_server(tmp_path_factory.mktemp("keys"), workers=3) as server,
        pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE d")
        cursor.execute("USE d")
        cursor.execute("CREATE TABLE a (id INT PRIMARY KEY, n BIGINT, m BIGINT, KEY (n), KEY (n, m))")
        cursor.execute("CREATE TABLE b (id INT PRIMARY KEY, d DECIMAL(12, 3), e DOUBLE, m BIGINT, KEY (d), KEY (e))")
        cursor.execute(f"INSERT INTO a VALUES {','.join(f'({n}, {n}, {n})' for n in range(20))}")
        cursor.execute(f"INSERT INTO b VALUES {','.join(f'({n}, {n} / 2, {n} / 2, {n} DIV 2)' for n in range(40))}")
        yield cursor


@pytest.mark.parametrize("sql", QUERIES)
def test_a_view_has_what_the_tables_have(cursor: Any, sql: str) -> None:
    def answer() -> list[Any]:
        cursor.execute(sql)
        return sorted(cursor.fetchall(), key=repr)

    expected = answer()
    for _ in range(3):
        assert answer() == expected
    cursor.execute("SHOW STATUS LIKE 'Millrace_reads_view'")
    assert int(cursor.fetchone()[1]) > 0, "the last ones come from a view"
