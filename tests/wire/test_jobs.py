"""Data jobs: Spark evaluates nodes of the plan over the shards' rows of one epoch. Views are verified and large queries evaluated with them while others write.

All of it is one file: Spark takes longer to start than everything here.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pymysql
import pytest

from controller.registry import Address
from tests.differential.comparison import DriverPeer, differences
from tests.differential.queries import QueryGenerator
from tests.differential.query_tables import definitions
from tests.wire.auditing import verify, writing
from tests.wire.spark_server import SparkServer, spark_context, spark_server

pytestmark = pytest.mark.slow

STORIES = 100
VIEWS = {
    "counts": "SELECT story, COUNT(*) AS votes, COUNT(DISTINCT user) AS users, SUM(weight) AS weight, AVG(weight) AS mean, AVG(user) AS m, MIN(at) AS first, MAX(big) AS big FROM votes GROUP BY story",
    "titles": "SELECT s.id, s.title, c.votes, c.votes * 2 - 1 AS odd, CASE WHEN c.votes > 9 THEN 1 ELSE 0 END AS many FROM stories s LEFT JOIN (SELECT story, COUNT(*) AS votes FROM votes WHERE user < 5 GROUP BY story) c ON c.story = s.id",
    "voted": "SELECT s.id, s.title FROM stories s WHERE EXISTS (SELECT 1 FROM votes v WHERE v.story = s.id AND v.weight > 100) AND s.title LIKE 'STORY%'",
    "quiet": "SELECT s.id, s.at FROM stories s WHERE NOT EXISTS (SELECT 1 FROM votes v WHERE v.story = s.id)",
    "pairs": "SELECT a.story AS story, a.id AS a, b.id AS b FROM votes a JOIN votes b ON a.story = b.story AND a.weight < b.weight WHERE a.user = 1",
    "by_user": "SELECT s.author AS author, COUNT(*) AS n FROM stories s GROUP BY s.author",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    context = spark_context()
    yield context
    context.stop()


@pytest.fixture(scope="module")
def server(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    with spark_server(tmp_path_factory.mktemp("jobs"), spark, workers=2) as found:
        with connect(found, None) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(30), author VARCHAR(20), at DATE)")
            cursor.execute(
                "CREATE TABLE votes (id INT PRIMARY KEY AUTO_INCREMENT, story INT, user SMALLINT NOT NULL, weight DECIMAL(10, 2), at DATETIME(3), big BIGINT UNSIGNED, KEY (story))"
            )
            stories = [(n, f"Story {n}", f"Author {n % 7}", "0000-00-00" if n == 3 else f"2024-01-{n % 28 + 1:02}") for n in range(STORIES + 5)]
            cursor.execute("SET sql_mode = ''")
            cursor.executemany("INSERT INTO stories VALUES (%s, %s, %s, %s)", stories)
            votes = [(None if n == 5 else n % STORIES, n % 11, n / 8 - 20, f"2024-02-{n % 28 + 1:02} 10:00:00.5", 2**64 - 1 - n) for n in range(1200)]
            cursor.executemany("INSERT INTO votes (story, user, weight, at, big) VALUES (%s, %s, %s, %s, %s)", votes)
            for name, query in VIEWS.items():
                cursor.execute(f"CREATE VIEW {name} AS {query}")
                keys = [f"'author {n}'" for n in range(8)] if name == "by_user" else [str(n) for n in range(-1, STORIES + 5)]
                column = {"by_user": "author", "counts": "story", "pairs": "story"}.get(name, "id")
                for _ in range(3):
                    for key in keys:
                        cursor.execute(f"SELECT * FROM {name} WHERE {column} = {key}")
                        cursor.fetchall()
            for _ in range(4):
                cursor.execute("SELECT user, COUNT(*), SUM(weight) FROM votes GROUP BY user")
                cursor.fetchall()
        yield found


def connect(server: SparkServer, database: str | None = "d") -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, database=database, user="root", autocommit=True, charset="utf8mb4")


def test_views_are_verified_by_spark_while_others_write_and_a_damaged_key_is_found(server: SparkServer) -> None:
    def statements(number: int) -> tuple[str, ...]:
        return (
            f"INSERT INTO votes (story, user, weight) VALUES ({number * 2 % STORIES}, {number % 13}, 0.1)",
            f"DELETE FROM votes WHERE id = {number} AND story <> 17",
        )

    with writing(lambda: connect(server), statements):
        code, output = verify(server.port)
        assert code == 0, output
        found = {line.partition(":")[0]: line for line in output.splitlines()}
        for name in VIEWS:
            assert ("by Spark: all right" in found[f"d.{name}"]) == (name != "by_user"), output
        assert "groups of type varchar" in found["d.by_user"] and "all right" in found["d.by_user"]
        assert f"d.counts: {STORIES + 6} keys" in output

        while not server.call(lambda: damaged(server)):
            pass  # until it is between two epochs
        code, output = verify(server.port, "counts")
        assert code == 1, output
        assert "1 differ" in output and "key 17\n" in output and output.count("maintained") == 1
        assert "maintained ((17, 999, " in output and "evaluated  ((17, 1" in output and "plan" in output
        code, output = verify(server.port, "--sample=20", "counts")
        assert "20 of " in output and "not Spark" in output


def damaged(server: SparkServer, name: str = "d.counts", place: int = 1) -> bool:
    """Whether the count of story 17, which is that column of the rows that are kept, is a wrong one now."""
    for worker in server.workers:
        shown = worker.views.shown()
        for hosted in shown.views.values() if shown is not None else ():
            index = hosted.view.arrangement.index
            if name in hosted.known.names and 17 in index:
                index[17] = (*index[17][:place], 999, *index[17][place + 1 :])
                return True
    return False


@pytest.mark.timeout(1800)
def test_one_damaged_key_of_forty_thousand_is_found_while_others_write(spark: Any, tmp_path: Path) -> None:
    """40,000 stories and a million votes."""
    stories, votes, at_once = 40_000, 1_000_000, 10_000
    with spark_server(tmp_path, spark, workers=2) as server:
        with connect(server, None) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(50), author INT)")
            cursor.execute("CREATE TABLE votes (story INT, user INT, PRIMARY KEY (story, user))")
            cursor.execute(
                "CREATE VIEW scored AS SELECT s.id, c.n, s.title FROM stories s "
                "JOIN (SELECT story, COUNT(*) AS n FROM votes GROUP BY story) c ON c.story = s.id"
            )
            for first in range(0, stories, at_once):
                cursor.execute("INSERT INTO stories VALUES " + ",".join(f"({n}, 'Story {n}', {n % 1000})" for n in range(first, first + at_once)))
            for first in range(0, votes, at_once):
                cursor.execute("INSERT INTO votes VALUES " + ",".join(f"({n // 25}, {n % 25})" for n in range(first, first + at_once)))
            for first in range(0, stories, 500):
                cursor.execute(f"SELECT id, n, title FROM scored WHERE id IN ({', '.join(map(str, range(first, first + 500)))})")
                cursor.fetchall()

        def statements(number: int) -> tuple[str, ...]:
            return (
                f"INSERT INTO votes VALUES ({18 + number % 30_000}, {25 + number})",
                f"DELETE FROM votes WHERE story = {18 + number * 7 % 30_000} AND user = {number % 25}",
            )

        with writing(lambda: connect(server), statements):
            code, output = verify(server.port, "scored")
            assert code == 0 and f"d.scored: {stories:,} keys" in output and "by Spark: all right" in output, output
            while not server.call(lambda: damaged(server, "d.scored", 0)):
                pass  # until it is between two epochs
            code, output = verify(server.port, "scored")
            assert code == 1 and "by Spark" in output, output
            assert "1 differ" in output and "key 17\n" in output and output.count("maintained") == 1
            assert "maintained ((999, 17, 'Story 17'),)" in output and "evaluated  ((25, 17, 'Story 17'),)" in output


def test_a_job_that_is_killed_ends(server: SparkServer) -> None:
    with socket.socket() as deaf, connect(server) as one, connect(server) as other:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(100)
        addresses = dict(server.cluster.addresses)
        nowhere = Address("127.0.0.1", deaf.getsockname()[1])
        server.move_workers(dict.fromkeys(addresses, nowhere))
        with one.cursor() as cursor, other.cursor() as observer:
            observer.execute("SELECT name FROM millrace.views WHERE named_views = 'd.counts'")
            [name, *_] = observer.fetchone()
            failed: list[Exception] = []

            def ask() -> None:
                try:
                    cursor.execute("CALL millrace.verify_view(%s, 0)", (name,))
                except pymysql.err.Error as error:
                    failed.append(error)

            thread = threading.Thread(target=ask)
            thread.start()
            shown: tuple[Any, ...] = ()
            while not shown:
                observer.execute("SELECT purpose, tasks, tasks_done FROM millrace.jobs WHERE tasks > 0")
                shown = observer.fetchall()
            assert shown[0][0] == "verify" and shown[0][2] == 0
            observer.execute(f"KILL QUERY {one.thread_id()}")
            thread.join()
            assert failed[0].args[0] == 1317
            while shown:
                observer.execute("SELECT job FROM millrace.jobs")
                shown = observer.fetchall()
        server.move_workers(addresses)


LARGE = (
    "SELECT s.id, s.at, COUNT(*) AS n, SUM(v.weight), AVG(v.user), COUNT(DISTINCT v.user) FROM stories s JOIN votes v ON v.story = s.id "
    "WHERE s.title LIKE 'story%' AND v.user < 10 GROUP BY s.id, s.at HAVING n > {} ORDER BY n DESC, s.id LIMIT 9"
)
SCHEMAS = 3
QUERIES_PER_SCHEMA = 60


@contextmanager
def all_by_spark(server: SparkServer) -> Iterator[list[str]]:
    """Whatever Spark can evaluate is a job; the statements of those that were done."""
    jobs = server.cluster.jobs
    assert jobs is not None
    done: list[str] = []
    rows, rows_min = jobs.rows, jobs.rows_min

    def counted(query: Any, *arguments: Any, **options: Any) -> Any:
        done.append(query.sql)
        return rows(query, *arguments, **options)

    jobs.rows_min, jobs.rows, server.cluster.column_rows_min = 0, counted, None  # type: ignore[method-assign]
    try:
        yield done
    finally:
        jobs.rows_min, jobs.rows, server.cluster.column_rows_min = rows_min, rows, 2_000  # type: ignore[method-assign]


def test_random_queries_by_spark_are_answered_as_by_rows(server: SparkServer) -> None:
    problems: list[str] = []
    with connect(server, None) as one:
        peer, jobs = DriverPeer(one), server.cluster.jobs
        with all_by_spark(server) as done:
            for seed in range(SCHEMAS):
                random = Random(seed)
                statements, tables = definitions(random)
                for sql in (f"CREATE DATABASE random{seed}", f"USE random{seed}", *statements, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"):
                    assert not peer.run(sql).error, sql
                for statement in QueryGenerator(random, tables).statements(QUERIES_PER_SCHEMA):
                    server.cluster.jobs = None
                    by_rows, warnings = peer.run(statement.sql), peer.run("SHOW WARNINGS").rows
                    server.cluster.jobs, before = jobs, len(done)
                    difference = differences(statement, by_rows, peer.run(statement.sql))
                    said = [each for each in peer.run("SHOW WARNINGS").rows or () if each[1] != b"1105"]  # that rows had to say them
                    if difference:
                        problems.append(f"{statement.sql}\n  {done[before:]}\n  by rows {difference}")
                    elif said != warnings:
                        problems.append(f"{statement.sql}\n  {done[before:]}\n  warnings {warnings}, by Spark {said}")
                peer.run("COMMIT")
    assert not problems, "\n".join(problems)
    assert len(done) > SCHEMAS * QUERIES_PER_SCHEMA // 10, "Spark is asked often enough"


def test_a_large_query_is_a_job_of_one_epoch_while_others_write(server: SparkServer) -> None:
    jobs = server.cluster.jobs
    assert jobs is not None
    with connect(server) as one, connect(server) as other, one.cursor() as cursor, other.cursor() as writer, all_by_spark(server) as done:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("BEGIN")
        server.cluster.jobs = None
        cursor.execute(LARGE.format(1))
        expected = cursor.fetchall()
        server.cluster.jobs = jobs
        writer.execute("DELETE FROM votes WHERE user = 3")
        cursor.execute(LARGE.format(1))
        assert cursor.fetchall() == expected and len(expected) == 9 and len(done) == 1
        cursor.execute("SHOW WARNINGS")
        assert not cursor.fetchall()
        cursor.execute("COMMIT")
        cursor.execute(LARGE.format(2))
        assert cursor.fetchall() != expected and len(done) == 2
        cursor.execute("EXPLAIN FORMAT=TREE " + LARGE.format(3))
        assert "evaluated by Spark if more than 0 rows" in cursor.fetchone()[0]


def test_a_query_whose_job_fails_is_answered_by_rows_and_says_so(server: SparkServer) -> None:
    with connect(server) as one, one.cursor() as cursor, all_by_spark(server) as done:
        cursor.execute("SELECT v.story, SUM(v.user * 900000000000000000) FROM votes v JOIN stories s ON s.id = v.story GROUP BY v.story HAVING v.story = 17")
        [(_, total)] = cursor.fetchall()
        assert done and total > 2**63
        cursor.execute("SHOW WARNINGS")
        [(level, code, message)] = cursor.fetchall()
        assert (level, code) == ("Note", 1105) and message.startswith("Evaluated by rows: Spark's job failed"), message


def test_a_query_that_is_killed_or_takes_too_long_ends_with_its_job(server: SparkServer) -> None:
    with socket.socket() as deaf, connect(server) as one, connect(server) as other, all_by_spark(server):
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(100)
        addresses = dict(server.cluster.addresses)
        server.move_workers(dict.fromkeys(addresses, Address("127.0.0.1", deaf.getsockname()[1])))
        with one.cursor() as cursor, other.cursor() as observer:
            failed: list[int] = []

            def ask() -> None:
                try:
                    cursor.execute(LARGE.format(7))
                except pymysql.err.Error as error:
                    failed.append(error.args[0])

            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("BEGIN")  # so no view answers
            for limit_ms, code in ((0, 1317), (3_000, 3024)):
                cursor.execute(f"SET max_execution_time = {limit_ms}")
                thread = threading.Thread(target=ask)
                thread.start()
                shown: tuple[Any, ...] = ()
                while not shown and not limit_ms and thread.is_alive():
                    observer.execute("SELECT purpose FROM millrace.jobs WHERE tasks > 0")
                    shown = observer.fetchall()
                if not limit_ms:
                    assert shown[0] == ("query",)
                    observer.execute(f"KILL QUERY {one.thread_id()}")
                thread.join()
                assert failed.pop() == code
                shown = ((),)
                while shown:
                    observer.execute("SELECT job FROM millrace.jobs")
                    shown = observer.fetchall()
        server.move_workers(addresses)


def test_the_rows_that_a_job_gives_count_as_those_of_the_statement(server: SparkServer) -> None:
    with connect(server) as one, one.cursor() as cursor, all_by_spark(server) as done:
        cursor.execute("SET statement_memory = 1000000")
        with pytest.raises(pymysql.err.Error) as failure:
            cursor.execute("SELECT a.id, b.id, a.weight, b.weight FROM votes a JOIN votes b ON a.user = b.user")
        assert failure.value.args[0] == 3170 and len(done) == 1
