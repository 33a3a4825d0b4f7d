"""Maintained views in a running cluster: every reader sees its own writes, and the sum is right in the end.

Views come while writers write, keys fill while epochs commit, the worker is killed, a table
changes its definition: what a query answers is always what its tables say.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import psutil
import pymysql
import pytest

from tests.cluster.test_concurrency import in_parallel
from tests.serving import MillraceServer

STORIES = 20
TALLY = (
    "SELECT s.id, COUNT(v.id), COALESCE(SUM(v.vote), 0) FROM stories s LEFT JOIN votes v ON v.story_id = s.id "
    "WHERE s.id = {} GROUP BY s.id"
)
TOP = "SELECT story_id, COUNT(*) AS n FROM votes GROUP BY story_id ORDER BY n DESC, story_id LIMIT 5"


@pytest.fixture(scope="module", params=[1, 3], ids=["one worker", "three workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    folder = tmp_path_factory.mktemp("views") / "data"
    server = MillraceServer(folder, "--adapters=2", f"--workers={request.param}")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.stories (id INT PRIMARY KEY, title VARCHAR(20))")
        cursor.execute(
            "CREATE TABLE d.votes (id INT AUTO_INCREMENT PRIMARY KEY, story_id INT, vote INT, KEY (story_id))"
        )
        cursor.execute("INSERT INTO d.stories VALUES " + ", ".join(f"({n}, 't{n}')" for n in range(STORIES)))
    yield server
    server.kill()


class Voters:
    """Threads that vote and read the tally of what they voted for."""

    def __init__(self, server: MillraceServer) -> None:
        self.server = server
        self.votes: Counter[int] = Counter()
        self._lock = threading.Lock()
        with server.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT story_id, vote FROM votes")
            self.votes.update(story for story, _ in cursor.fetchall())

    def __call__(self, number: int, cursor: Any) -> None:
        random = Random(number)
        mine: Counter[int] = Counter()
        for _ in range(50):
            story = random.randrange(STORIES)
            cursor.execute(f"INSERT INTO votes (story_id, vote) VALUES ({story}, 1)")
            mine[story] += 1
            with self._lock:
                self.votes[story] += 1
            cursor.execute(TALLY.format(story))
            [(found, count, total)] = cursor.fetchall()
            assert found == story and count == total and count >= mine[story]

    def check(self) -> None:
        with self.server.connect("d") as connection, connection.cursor() as cursor:
            for _ in range(3):
                for story in range(STORIES):
                    cursor.execute(TALLY.format(story))
                    assert cursor.fetchall() == ((story, self.votes[story], self.votes[story]),)
                best = sorted(self.votes.items(), key=lambda each: (-each[1], each[0]))[:5]
                cursor.execute(TOP)
                assert list(cursor.fetchall()) == best


def test_readers_see_their_own_writes_in_views_and_all_votes_count(server: MillraceServer) -> None:
    voters = Voters(server)
    in_parallel(server, 6, voters)
    voters.check()
    assert all(shard["views"] >= 2 for shard in server.status()["shards"])


def test_keys_of_a_view_are_read_as_of_one_moment(server: MillraceServer) -> None:
    """One transaction sets all rows to the same number: no lookup of several sees two, wherever the keys are."""
    keys = range(1, 9)
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE clocks (id INT PRIMARY KEY, n INT)")
        cursor.execute("INSERT INTO clocks VALUES " + ", ".join(f"({key}, 0)" for key in keys))
    reading = threading.Event()
    reading.set()

    def tick(cursor: Any) -> None:
        for n in range(1, 150):
            cursor.execute("BEGIN")
            cursor.execute(f"UPDATE clocks SET n = {n}")
            cursor.execute("COMMIT")
        reading.clear()

    def watch(number: int, cursor: Any) -> None:
        random = Random(number)
        while reading.is_set():
            some = ", ".join(str(random.choice(keys)) for _ in range(3))
            cursor.execute(f"SELECT n FROM clocks WHERE id IN ({some})")
            found = {n for (n,) in cursor.fetchall()}
            assert len(found) == 1, found

    in_parallel(server, 4, lambda number, cursor: watch(number, cursor) if number else tick(cursor))


def test_views_are_right_again_after_a_worker_was_killed(server: MillraceServer) -> None:
    voters = Voters(server)
    for shard in range(min(2, len(server.status()["shards"]))):
        voters.check()
        psutil.Process(server.status()["shards"][shard]["process"]).kill()
        voters.check()
        in_parallel(server, 3, voters)
        voters.check()


def test_a_view_that_cannot_be_computed_takes_no_other_with_it(server: MillraceServer) -> None:
    """A product out of range is an error of the query that asks for it, never of who writes the row."""
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE factors (id INT PRIMARY KEY, a BIGINT, b BIGINT)")
        cursor.execute("INSERT INTO factors VALUES (1, 2, 3), (2, 4, 5)")

        def product(key: int) -> object:
            cursor.execute(f"SELECT a * b FROM factors WHERE id = {key}")
            return cursor.fetchone()[0]

        def total() -> object:
            cursor.execute("SELECT SUM(a * b) FROM factors")
            return cursor.fetchone()[0]

        for _ in range(5):
            assert (product(1), product(2), total()) == (6, 20, 26)
        cursor.execute("INSERT INTO factors VALUES (3, 9000000000000000000, 2)")
        for _ in range(5):
            assert (product(1), product(2)) == (6, 20)
            for failing in (lambda: product(3), total):
                with pytest.raises(pymysql.err.MySQLError) as raised:
                    failing()
                assert raised.value.args[0] == 1690
        cursor.execute("UPDATE factors SET b = 1 WHERE id = 3")
        for _ in range(5):
            assert (product(3), total()) == (9 * 10**18, 26 + 9 * 10**18)
    Voters(server).check()


def test_views_follow_changes_of_their_tables(server: MillraceServer) -> None:
    voters = Voters(server)
    voters.check()
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE votes ADD COLUMN reason VARCHAR(10) DEFAULT 'x' AFTER id")
        voters.check()
        cursor.execute("ALTER TABLE votes DROP COLUMN vote")
        for _ in range(3):
            with pytest.raises(pymysql.err.OperationalError) as raised:
                cursor.execute(TALLY.format(1))
            assert raised.value.args[0] == 1054
        cursor.execute("ALTER TABLE votes ADD COLUMN vote INT DEFAULT 1")
        voters.check()
        cursor.execute("TRUNCATE TABLE votes")
        for _ in range(3):
            cursor.execute(TALLY.format(1))
            assert cursor.fetchall() == ((1, 0, 0),)
