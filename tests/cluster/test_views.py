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
from tests.cluster.test_watchdog import until
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


ONE_MOMENT = (
    "SELECT n FROM clocks WHERE id IN ({some})",
    "SELECT n, COUNT(*) FROM clocks c JOIN ticks t ON t.clock = c.id WHERE c.id IN ({some}) GROUP BY c.id, n",
    # never views
    "SELECT n, (SELECT COUNT(*) FROM ticks WHERE clock = c.id) FROM clocks c WHERE id IN ({some}) AND RAND() < 2",
    "SELECT COUNT(*), 8 FROM clocks WHERE shade IN (0, 1) AND RAND() < 2",
    "WITH RECURSIVE r AS (SELECT id, n FROM clocks WHERE id = 1 "
    "UNION ALL SELECT c.id, c.n FROM r JOIN clocks c ON c.id = r.id + 1) SELECT n FROM r",
    "SELECT d.n, c.n FROM (SELECT id, n, ROW_NUMBER() OVER (ORDER BY id) AS place FROM clocks) d "
    "JOIN clocks c ON c.id = 9 - d.id WHERE place IN ({some})",
)


def test_a_statement_sees_one_moment(server: MillraceServer) -> None:
    """One transaction sets all rows to the same number: no statement sees two, wherever the rows are."""
    keys = range(1, 9)
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE clocks (id INT PRIMARY KEY, n INT, shade INT, KEY (shade))")
        cursor.execute("CREATE TABLE ticks (id INT AUTO_INCREMENT PRIMARY KEY, clock INT, KEY (clock))")
        cursor.execute("CREATE TABLE own (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO clocks VALUES " + ", ".join(f"({key}, 0, {key % 2})" for key in keys))
    reading = threading.Event()
    reading.set()

    def tick(cursor: Any) -> None:
        try:
            for n in range(1, 100):
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE clocks SET n = {n}, shade = 1 - shade")
                cursor.execute("INSERT INTO ticks (clock) VALUES " + ", ".join(f"({key})" for key in keys))
                cursor.execute("COMMIT")
        finally:
            reading.clear()

    def watch(number: int, cursor: Any) -> None:
        random = Random(number)
        while reading.is_set():
            with_writes = random.random() < 0.3
            if with_writes:
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO own VALUES ({number})")
            query = random.choice(ONE_MOMENT).format(some=", ".join(str(random.choice(keys)) for _ in range(3)))
            cursor.execute(query)
            found = {value for row in cursor.fetchall() for value in row}
            assert len(found - {0}) <= 1, (found, query)
            if with_writes:
                cursor.execute("ROLLBACK")

    in_parallel(server, 4, lambda number, cursor: watch(number, cursor) if number else tick(cursor))


def test_views_are_right_again_after_a_worker_was_killed(server: MillraceServer) -> None:
    voters = Voters(server)
    for shard in range(min(2, len(server.status()["shards"]))):
        voters.check()
        psutil.Process(server.status()["shards"][shard]["process"]).kill()
        voters.check()
        in_parallel(server, 3, voters)
        voters.check()


def test_a_killed_worker_takes_its_own_keys_alone(server: MillraceServer) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:

        def keys_filled() -> dict[int, int]:
            cursor.execute("SELECT shard, key_count FROM millrace.views WHERE tables = 'd.votes' AND definition LIKE '%sum%'")
            return dict(cursor.fetchall())

        for _ in range(3):
            for story in range(STORIES):
                cursor.execute(f"SELECT SUM(id) FROM votes WHERE story_id = {story}")
                cursor.fetchall()
        before = keys_filled()
        psutil.Process(server.status()["shards"][-1]["process"]).kill()
        lost = len(before) - 1
        until(lambda: keys_filled() == before | {lost: 0})


def test_a_view_that_cannot_be_computed_is_set_aside_and_named_and_takes_no_other_with_it(server: MillraceServer) -> None:
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
        cursor.execute("SELECT DISTINCT tables, reason LIKE '%out of range%' FROM millrace.views WHERE state = 'set aside'")
        assert cursor.fetchall() == (("d.factors", 1),)
        cursor.execute("UPDATE factors SET b = 1 WHERE id = 3")
        for _ in range(5):
            assert (product(3), total()) == (9 * 10**18, 26 + 9 * 10**18)
        Voters(server).check()
        cursor.execute("SELECT COUNT(*) >= 2 FROM millrace.views WHERE tables LIKE '%votes%' AND state <> 'set aside'")
        assert cursor.fetchall() == ((1,),)
        cursor.execute("ALTER TABLE factors ADD COLUMN c INT")
        cursor.execute("SELECT * FROM millrace.views WHERE state = 'set aside'")
        assert not cursor.fetchall()


def test_small_tables_are_kept_whole_and_rows_without_a_key_in_their_order(server: MillraceServer) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE tags (id INT PRIMARY KEY, tag VARCHAR(20), privileged INT)")
        cursor.execute("INSERT INTO tags VALUES " + ", ".join(f"({n}, 'tag {n % 30}', {n % 2})" for n in range(60)))
        by_tag = "SELECT id FROM tags WHERE tag = {} ORDER BY id"
        after = "SELECT t.id, s.id FROM tags t JOIN stories s ON s.id = t.id % 20 WHERE t.id > {} ORDER BY t.id, s.id LIMIT 3"
        for n in range(40):
            cursor.execute(by_tag.format(f"'tag {n}'"))
            assert cursor.fetchall() == (((n,), (n + 30,)) if n < 30 else ())
            cursor.execute(after.format(n))
            assert cursor.fetchall() == tuple((id, id % 20) for id in range(n + 1, min(n + 4, 60)))
        cursor.execute("SELECT SUM(misses) FROM millrace.views WHERE tables = 'd.tags' AND reason LIKE '%table is small%'")
        assert cursor.fetchall() == ((0,),)
        cursor.execute("SELECT COUNT(*) FROM millrace.views WHERE tables LIKE '%tags%' AND tables LIKE '%stories%'")
        assert cursor.fetchone()[0] >= 1
        cursor.execute("INSERT INTO tags VALUES (100, 'tag 35', 0)")
        cursor.execute(by_tag.format("'tag 35'"))
        assert cursor.fetchall() == ((100,),)
        cursor.execute(after.format(59))
        assert cursor.fetchall() == ((100, 0),)


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
