"""The 22 TPC-H queries as maintained views, while rows come, change and go: MariaDB's answers."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from random import Random

import pytest

from apps.tpch.rows import Rows
from backend.execution.local_store import LocalStore
from controller.sql.text.lexer import split_statements
from tests.differential.comparison import DriverPeer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

QUERIES = [f"SELECT * FROM q{number}" for number in range(1, 23)]
CHANGES_PER_BATCH = 8


def definitions() -> list[str]:
    folder = resources.files("apps.tpch")
    return [sql for name in ("schema.sql", "views.sql") for sql in split_statements(folder.joinpath(name).read_text())]


def follow(mariadb: MariaDB, folder: Path, seed: int, batches: int) -> None:
    rows = Rows(Random(seed))
    found_something: set[str] = set()
    with mariadb.connect(mariadb.fresh_database()) as connection, EmbeddedPeer(folder, shard_count=1) as found:
        expected = DriverPeer(connection)
        for sql in (*definitions(), *rows.initial()):
            for peer in (expected, found):
                assert not (answer := peer.run(sql)).error, (sql, answer)
        store = found.database.store
        assert isinstance(store, LocalStore)
        for batch in range(batches + 1):
            changes = [sql for _ in range(CHANGES_PER_BATCH) for sql in rows.change()] if batch else []
            for sql in changes:
                assert not differences(Generated(sql), expected.run(sql), found.run(sql)), sql
            for sql in QUERIES:
                theirs, ours = expected.run(sql), found.run(sql)
                difference = differences(Generated(sql, ordered=True), theirs, ours)
                assert not difference, f"seed {seed}, batch {batch} {changes}\n{sql}\n  expected {difference}"
                if theirs.rows and theirs.rows[0][-1] is not None:
                    found_something.add(sql)
                if not batch:  # asked once more, it becomes a view
                    assert not differences(Generated(sql, ordered=True), theirs, found.run(sql)), sql
            assert len(store.hosted_views()) == len(QUERIES), "all of them are answered from views"
    assert found_something == set(QUERIES)


def test_tpch_views_follow_25_batches_of_changes(mariadb: MariaDB, tmp_path: Path) -> None:
    follow(mariadb, tmp_path, seed=1, batches=25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_tpch_views_follow_100_batches_of_changes(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    follow(mariadb, tmp_path, seed, batches=100)
