"""A view that cannot be computed is set aside; all other views keep their keys, also those over the same tables, with any number of workers."""

from __future__ import annotations

from pathlib import Path

import pymysql
import pytest

from tests.wire.test_changed_tables import Session
from tests.wire.worker_server import worker_server

KEYS = range(12)
COUNT = "SELECT g, COUNT(*) FROM factors WHERE g = {} GROUP BY g"
NAMES = "SELECT f.id, g.name FROM factors f JOIN gs g ON g.id = f.g WHERE f.g = {}"
PRODUCT = "SELECT f.id, g.name, f.a * f.b FROM factors f JOIN gs g ON g.id = f.g WHERE f.g = {}"
"""The product is computed when it is read."""
LARGEST = "SELECT g, MAX(a * b) FROM factors WHERE g = {} GROUP BY g"
STATES = "SELECT DISTINCT state, reason LIKE '%out of range%' FROM millrace.views WHERE state = 'set aside'"
FILLED = "SELECT name, SUM(key_count), SUM(misses) FROM millrace.views WHERE state <> 'set aside' GROUP BY name"


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_view_that_fails_takes_no_key_of_another(workers: int, tmp_path: Path) -> None:
    with worker_server(tmp_path, workers=workers) as server, Session(server) as session:
        session.run("CREATE DATABASE d")
        session.run("USE d")
        session.run("CREATE TABLE factors (id INT PRIMARY KEY, g INT, a BIGINT, b BIGINT, KEY (g))")
        session.run("CREATE TABLE gs (id INT PRIMARY KEY, name VARCHAR(9))")
        session.run("INSERT INTO factors VALUES " + ", ".join(f"({n}, {n % 12}, {n}, 2)" for n in range(60)))
        session.run("INSERT INTO gs VALUES " + ", ".join(f"({n}, 'g{n}')" for n in KEYS))
        for _ in range(3):
            session.read(COUNT, NAMES, PRODUCT, LARGEST)
        assert len(session.run(FILLED)) == 4
        for row in range(100, 160):
            key = row % 12
            session.run(f"INSERT INTO factors VALUES ({row}, {key}, {9 * 10**18 if row == 130 else row}, 2)")
            assert session.run(COUNT.format(key)) == [(key, 6 + (row - 100) // 12)]
            if row < 130:
                before = session.run(FILLED)
        assert session.run(STATES) == [("set aside", 1)]
        left = session.run(FILLED)
        assert len(left) == 3 and {*left} <= {*before}, "no key of the others was lost or filled anew"
        session.check(COUNT, NAMES)
        for failing in (PRODUCT, LARGEST):
            with pytest.raises(pymysql.err.MySQLError, match="out of range"):
                session.run(failing.format(130 % 12))
        session.run("UPDATE factors SET b = 1 WHERE id = 130")
        session.check(COUNT, NAMES, PRODUCT, LARGEST)
        assert {*left} <= {*session.run(FILLED)}
