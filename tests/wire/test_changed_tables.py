"""Tables change their definitions under views: filled keys stay where a view does not use what changes, and every answer is right.

A query in a transaction with REPEATABLE READ is evaluated, so it tells what a view is to show.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.wire.worker_server import WorkerServer, worker_server

KEYS = range(12)
COUNT = "SELECT s.id, s.title, COUNT(v.id) FROM stories s LEFT JOIN votes v ON v.story = s.id WHERE s.id = {} GROUP BY s.id, s.title"
TITLES = "SELECT v.user, s.title FROM votes v JOIN stories s ON s.id = v.story WHERE v.story = {}"
VOTES = "SELECT user, COUNT(*) FROM votes WHERE story = {} GROUP BY user"
ROWS = "SELECT * FROM votes WHERE story = {}"
QUERIES = (COUNT, TITLES, VOTES, ROWS)


@pytest.fixture(params=[1, 2, 3, 5], ids="{} workers".format)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("changed"), workers=request.param) as found:
        with Session(found) as session:
            session.run("CREATE DATABASE d")
            session.run("USE d")
            session.run("CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(20), score INT)")
            session.run("CREATE TABLE votes (id INT PRIMARY KEY, story INT, user INT, note VARCHAR(20), KEY by_story (story))")
            session.run("INSERT INTO stories VALUES " + ", ".join(f"({n}, 'story {n}', {n % 3})" for n in KEYS))
            session.run("INSERT INTO votes VALUES " + ", ".join(f"({n}, {n % 12}, {n % 5}, 'x')" for n in range(60)))
        yield found


class Session:
    def __init__(self, server: WorkerServer, database: str | None = None) -> None:
        self._connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", database=database, autocommit=True)
        self._cursor = self._connection.cursor()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        self._cursor.execute(sql)
        return sorted(self._cursor.fetchall(), key=repr)

    def filled(self) -> dict[str, tuple[int, int]]:
        """Of each view that is there: how many keys it has, of those that are read here, and how many were ever filled, on all shards."""
        found = self.run("SELECT name, SUM(key_count), SUM(misses) FROM millrace.views GROUP BY name")
        return {name: (min(int(keys), len(KEYS)), int(misses)) for name, keys, misses in found}

    def read(self, *queries: str) -> None:
        for sql in queries:
            for key in KEYS:
                self.run(sql.format(key))

    def check(self, *queries: str) -> None:
        """Nobody writes: what views show is what is evaluated."""
        for sql in queries:
            shown = [self.run(sql.format(key)) for key in KEYS]
            self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.run("START TRANSACTION")
            evaluated = [self.run(sql.format(key)) for key in KEYS]
            self.run("COMMIT")
            assert shown == evaluated, sql

    def check_filled(self, filled: dict[str, tuple[int, int]], *queries: str) -> None:
        """Answers are right, and come from the keys that were `filled` before."""
        assert self.filled() == filled, "no key was lost"
        self.check(*queries)
        assert self.filled() == filled, "none was filled anew"


def test_keys_stay_filled_where_a_view_does_not_use_what_changes(server: WorkerServer) -> None:
    with Session(server, "d") as session:
        session.read(*QUERIES * 3)
        before = session.filled()
        assert len(before) == 4 and all(keys == len(KEYS) for keys, _ in before.values())

        session.run("CREATE INDEX by_note ON votes (note)")
        session.run("CREATE INDEX by_score ON stories (score)")
        session.check_filled(before, *QUERIES)

        session.run("ALTER TABLE stories ADD COLUMN author VARCHAR(9) DEFAULT 'me' FIRST, RENAME COLUMN score TO points")
        session.run("UPDATE stories SET author = 'you', title = CONCAT(title, '!') WHERE id < 6")
        session.run("INSERT INTO stories VALUES ('they', 77, 'new', 1), ('they', 78, 'new', 1)")
        session.run("DELETE FROM stories WHERE id = 7")
        session.check_filled(before, *QUERIES)

        session.run("DROP INDEX by_score ON stories")
        session.run("ALTER TABLE stories DROP COLUMN points, DROP COLUMN author")
        session.run("REPLACE INTO stories VALUES (7, 'again'), (77, 'newer')")
        session.check_filled(before, *QUERIES)

        session.run("ALTER TABLE votes ADD COLUMN weight INT DEFAULT 2")
        session.run("INSERT INTO votes VALUES (100, 3, 9, 'y', 5), (101, 4, 9, NULL, NULL)")
        session.run("UPDATE votes SET weight = 3, user = user + 1 WHERE id % 7 = 0")
        left = session.filled()
        assert len(left) == 3 and left.items() < before.items(), "only who wants all columns has another view"
        session.check(*QUERIES, "SELECT SUM(weight) FROM votes WHERE story = {}")
        assert left.items() < session.filled().items()

        session.run("ALTER TABLE votes RENAME COLUMN user TO note, RENAME COLUMN note TO user")
        session.check(*QUERIES)
        assert session.run(VOTES.format(2)) == [("x", 5)], "columns are known by identity, queries name them"

        session.run("ALTER TABLE stories MODIFY title VARCHAR(40)")
        session.run("UPDATE stories SET title = REPEAT('t', 40) WHERE id = 5")
        session.run("DROP INDEX by_story ON votes")
        session.run("UPDATE votes SET story = 5 WHERE id % 9 = 1")
        session.check(*QUERIES)


@pytest.mark.parametrize("seed", range(int(os.environ.get("MILLRACE_SEEDS", "1"))))
def test_answers_are_right_while_tables_change_and_others_write(server: WorkerServer, seed: int) -> None:
    chance = random.Random(seed)
    errors: list[BaseException] = []

    def write(number: int) -> None:
        own = random.Random(seed * 100 + number)
        try:
            with Session(server, "d") as session:
                for _ in range(60):
                    row = own.randrange(1000)
                    session.run(own.choice([
                        f"REPLACE INTO votes (id, story, user, note) VALUES ({row}, {own.randrange(12)}, {own.randrange(5)}, 'w')",
                        f"DELETE FROM votes WHERE id = {row}",
                        f"UPDATE votes SET story = {own.randrange(12)} WHERE id % 10 = {own.randrange(10)}",
                        f"UPDATE stories SET title = 'title {row}' WHERE id = {own.randrange(12)}",
                        COUNT.format(own.randrange(12)), TITLES.format(own.randrange(12)), VOTES.format(own.randrange(12)),
                    ]))  # fmt: skip
        except BaseException as error:
            errors.append(error)

    with Session(server, "d") as session:
        for round_ in range(2):
            session.read(COUNT, TITLES, VOTES)
            writers = [threading.Thread(target=write, args=(2 * round_ + number,)) for number in range(2)]
            for each in writers:
                each.start()
            for number in range(6):
                table = chance.choice(["stories", "votes"])
                session.run(chance.choice([
                    f"ALTER TABLE {table} ADD COLUMN c{round_}{number} INT DEFAULT {number}{chance.choice(['', ' FIRST'])}",
                    f"ALTER TABLE {table} ADD COLUMN d{round_}{number} INT, ADD INDEX (d{round_}{number})",
                    f"ALTER TABLE {table} COMMENT 'x{number}'",
                    f"CREATE INDEX more{round_}{number} ON votes (user, story)",
                    "ALTER TABLE votes DROP INDEX by_story, ADD INDEX by_story (story)",
                ]))  # fmt: skip
                session.read(COUNT)
            for each in writers:
                each.join()
            assert not errors, errors
            session.check(COUNT, TITLES, VOTES)
            if round_ == 0:
                server.wait_for(server.stop_worker())
                server.wait_for(server.start_worker())
