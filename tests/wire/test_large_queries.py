"""Queries that read many rows where Spark would evaluate them, but takes no jobs: by rows, and the statement is told. With Spark: tests/wire/test_jobs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from backend.jobs.data_jobs import DataJobs
from tests.wire.worker_server import SECRET, WorkerServer, worker_server

ROWS_MIN = 50
JOINED = "SELECT s.id, COUNT(*) FROM stories s JOIN votes v ON v.story = s.id WHERE s.id < {} GROUP BY s.id ORDER BY s.id LIMIT 2"

Run = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    async def nowhere() -> None:
        return None

    with worker_server(tmp_path_factory.mktemp("large")) as found:
        found.cluster.jobs = DataJobs(found.cluster, nowhere, SECRET, ROWS_MIN)
        yield found


@pytest.fixture(scope="module")
def run(server: WorkerServer) -> Iterator[Run]:
    with pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True) as connection, connection.cursor() as cursor:

        def execute(sql: str) -> list[tuple[Any, ...]]:
            cursor.execute(sql)
            return list(cursor.fetchall())

        execute("CREATE DATABASE d")
        execute("USE d")
        execute("CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(30))")
        execute("CREATE TABLE votes (id INT PRIMARY KEY, story INT, KEY (story))")
        execute(f"INSERT INTO stories VALUES {','.join(f'({n}, {n % 3})' for n in range(300))}")
        execute(f"INSERT INTO votes VALUES {','.join(f'({n}, {n % 100})' for n in range(200))}")
        yield execute


def test_a_job_that_cannot_be_done_is_said_and_not_tried_again_at_once(run: Run) -> None:
    for number in range(3):
        assert run(JOINED.format(290 + number)) == [(0, 2), (1, 2)]
        warnings = run("SHOW WARNINGS")
        assert warnings == ([("Note", 1105, "Evaluated by rows: Spark takes no jobs at the moment")] if number == 0 else [])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.title, v.id FROM stories s JOIN votes v ON v.story = s.id WHERE s.id = 3",  # an index finds them
        "SELECT s.title, COUNT(*) FROM stories s JOIN votes v ON v.story = s.id GROUP BY s.title",  # no exact form
        "SELECT COUNT(*) FROM votes WHERE id + story > 3",  # by column
        "SELECT v.id FROM votes v JOIN stories s ON s.id = v.story WHERE v.id < 7",  # few rows of a range
    ],
)
def test_what_reads_few_rows_or_has_no_form_is_no_job(run: Run, sql: str) -> None:
    run(sql)
    assert run("SHOW WARNINGS") == []


def test_rows_that_a_transaction_has_written_are_seen(run: Run) -> None:
    run("BEGIN")
    run("INSERT INTO votes VALUES (1000, 0)")
    assert run("SELECT s.id, COUNT(*) AS n FROM stories s JOIN votes v ON v.story = s.id GROUP BY s.id ORDER BY n DESC LIMIT 1") == [(0, 3)]
    assert run("SHOW WARNINGS") == []
    run("ROLLBACK")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (JOINED.format(9), f"by Spark if more than {ROWS_MIN} rows of a table are read, else by rows"),
        ("SELECT COUNT(*) FROM votes WHERE id + story > 3", "evaluated by column"),
        ("SELECT v.id FROM votes v JOIN votes w ON v.id = w.story AND RAND() < 2", "not by Spark: values that are not known, or differ from row to row"),
        ("SELECT s.title, COUNT(*) FROM stories s JOIN votes v ON v.story = s.id GROUP BY s.title FOR UPDATE", "not by Spark: locked rows"),
    ],
)
def test_explain_says_which_of_the_three_ways(run: Run, sql: str, expected: str) -> None:
    assert expected in run(f"EXPLAIN FORMAT=TREE {sql}")[0][0]
