"""SELECTs of every kind over small tables: the answers are MariaDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.comparison import DriverPeer, Peer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

FOLDER = Path(__file__).parent / "queries"


def statements(name: str) -> list[str]:
    lines = (FOLDER / f"{name}.sql").read_text().splitlines()
    return [line.rstrip(";") for line in lines if line and not line.startswith("--")]


def asked(line: str) -> tuple[str, str]:
    """What MariaDB is asked, and what millrace is."""
    ours, _, theirs = line.partition(" -- is ")
    return theirs or ours, ours


@pytest.fixture(scope="module")
def peers(mariadb: MariaDB, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Peer]]:
    connection = mariadb.connect(mariadb.fresh_database())
    with EmbeddedPeer(tmp_path_factory.mktemp("engine")) as found:
        expected = DriverPeer(connection)
        for sql in statements("tables"):
            assert not expected.run(sql).error
            assert not found.run(sql).error, found.run(sql)
        yield expected, found
    connection.close()


def test_rows_found_by_queries_are_changed_like_in_mariadb(mariadb: MariaDB, tmp_path: Path) -> None:
    """In order: each statement finds what the ones before it left."""
    problems = []
    with mariadb.connect(mariadb.fresh_database()) as connection, EmbeddedPeer(tmp_path) as found:
        expected = DriverPeer(connection)
        for sql in (*statements("tables"), *statements("writes")):
            theirs, ours = expected.run(sql), found.run(sql)
            difference = differences(Generated(sql), theirs, ours)
            if difference:
                problems.append(f"{sql}\n  expected {difference}")
    assert not problems, f"{len(problems)} answers differ:\n" + "\n".join(problems)


@pytest.mark.parametrize("name", ["joins", "subqueries", "lateral", "recursion", "groups", "set_operations", "windows", "literals", "errors"])
def test_queries_are_answered_like_mariadb(peers: tuple[Peer, Peer], name: str) -> None:
    expected, found = peers
    problems = []
    for line in statements(name):
        theirs, sql = asked(line)
        is_ordered = any(clause in sql.upper().rsplit(")", 1)[-1] for clause in (" ORDER BY ", " WITH ROLLUP"))
        difference = differences(Generated(sql, ordered=is_ordered), expected.run(theirs), found.run(sql))
        if difference:
            problems.append(f"{sql}\n  expected {difference}")
    assert not problems, f"{len(problems)} answers differ:\n" + "\n".join(problems)
