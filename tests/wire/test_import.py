"""`millrace import` of a live MariaDB: all that it has is there afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backend.imports import mysql_source
from backend.imports.journal import DATABASE
from backend.imports.server import rows_of
from tests.mariadb import MariaDB
from tests.wire.importing import KINDS, connect, contents, fill, run_import
from tests.wire.server import ServerThread


@pytest.fixture
def source(mariadb: MariaDB) -> str:
    return mariadb.fresh_database()


@pytest.fixture
def target(millrace: ServerThread, source: str) -> Iterator[Any]:
    with connect(millrace.port) as connection:
        yield connection
        rows_of(connection, f"DROP DATABASE IF EXISTS {source}")


def test_values_of_every_type_are_the_same(millrace: ServerThread, mariadb: MariaDB, source: str, target: Any) -> None:
    with mariadb.connect(source) as connection:
        fill(connection, KINDS)
        done = run_import(millrace.port, f"mysql://root@127.0.0.1:{mariadb.port}/{source}", "--jobs=2", "--chunk-rows=3")
        assert done.exit_code == 0, done.output
        assert "17 rows stored, 0 rejected" in done.output and "not imported: trigger left_out" in done.output
        expected = contents(connection, source)
        assert expected.keys() >= {"parents", "kinds", "nokey", "odd `name", "empty", "first", "second"}
        assert contents(target, source) == expected
    rows_of(target, "INSERT INTO parents (name) VALUES ('next')")
    assert rows_of(target, "SELECT MAX(id) FROM parents") == [(103,)], "AUTO_INCREMENT goes on"
    rows_of(target, "DELETE FROM parents WHERE id = 100")
    assert rows_of(target, "SELECT COUNT(*) FROM kinds WHERE a = 1") == [(0,)], "foreign keys are there"
    assert rows_of(target, f"SELECT COUNT(*) FROM {DATABASE}.steps") == [(0,)], "nothing is left of the journal"


@pytest.mark.parametrize("key", ["id INT PRIMARY KEY", "id VARCHAR(20) PRIMARY KEY", "id BIGINT, b INT, PRIMARY KEY (b, id)"])
def test_tables_are_read_by_ranges_of_their_keys(
    millrace: ServerThread, mariadb: MariaDB, source: str, target: Any, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_source, "UNIT_ROWS_MIN", 10)
    with mariadb.connect(source) as connection:
        columns = key if "b INT" in key else f"{key}, b INT"
        fill(connection, f"CREATE TABLE t ({columns});\nINSERT INTO t (id, b) SELECT seq * 3, seq % 7 FROM seq_1_to_500;\nANALYZE TABLE t")
        done = run_import(millrace.port, f"mysql://root@127.0.0.1:{mariadb.port}/{source}", "--chunk-rows=40")
        assert "500 rows stored, 0 rejected" in done.output, done.output
        assert contents(target, source) == contents(connection, source)


def test_what_millrace_does_not_have_is_said_before_anything_is_copied(
    millrace: ServerThread, mariadb: MariaDB, source: str, target: Any
) -> None:
    with mariadb.connect(source) as connection:
        fill(connection, "CREATE TABLE places (id INT PRIMARY KEY, p POINT);\nCREATE TABLE t (id INT PRIMARY KEY);\nINSERT INTO t VALUES (1)")
    url = f"mysql://root@127.0.0.1:{mariadb.port}/{source}"
    done = run_import(millrace.port, url)
    assert done.exit_code == 1 and "places: " in done.output and "--exclude" in done.output
    assert run_import(millrace.port, url, "--forget").exit_code == 0
    rows_of(target, f"DROP DATABASE {source}")
    done = run_import(millrace.port, url, "--exclude=places")
    assert "1 rows stored" in done.output
    done = run_import(millrace.port, url, "--exclude=places")
    assert done.exit_code == 1 and "has tables of these names: t" in done.output


def test_rows_that_are_refused_are_named_and_all_others_are_stored(
    millrace: ServerThread, mariadb: MariaDB, source: str, target: Any, tmp_path: Any
) -> None:
    with mariadb.connect(source) as connection:
        fill(connection, "CREATE TABLE t (id INT PRIMARY KEY, n INT CHECK (n < 100))")
        fill(connection, "SET check_constraint_checks = 0;\nINSERT INTO t SELECT seq, IF(seq IN (7, 55), 100, seq) FROM seq_1_to_90")
    report = tmp_path / "rejected.jsonl"
    done = run_import(millrace.port, f"mysql://root@127.0.0.1:{mariadb.port}/{source}", f"--rejected={report}")
    assert done.exit_code == 1 and "88 rows stored, 2 rejected" in done.output, done.output
    assert "rejected: t id=7: " in done.output and "rejected: t id=55: " in done.output
    assert [line.count('"code": 3819') for line in report.read_text().splitlines()] == [1, 1]
    assert rows_of(target, f"SELECT COUNT(*), SUM(id) FROM {source}.t") == [(88, 90 * 91 // 2 - 62)]
