"""The same SELECTs from maintained views, while their tables change: still MariaDB's answers.

Every query is asked often enough to become a view; then rows come, change and go in random
batches, and every query is asked again after each.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from random import Random

import pytest

from backend.execution.local_store import LocalStore
from tests.differential.comparison import Answer, DriverPeer, Peer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.logic.test_queries import asked, statements
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

KINDS = ["joins", "subqueries", "lateral", "recursion", "groups", "set_operations", "windows"]
CHANGES_PER_BATCH = 6


def change(random: Random) -> str:
    """A statement that changes some row, by key so that both servers change the same one."""
    key, other = random.randint(1, 9), random.randint(1, 9)
    text = random.choice(["NULL", "'Ann'", "'ANN'", "'beta'", "'Béta'", "'x '", "''"])
    number = random.choice(["NULL", "0", "1", "2", "10", "-3"])
    match random.randrange(12):
        case 0:
            return f"INSERT IGNORE INTO users VALUES ({key}, {text}, {number}, {number}, '2020-01-0{key}')"
        case 1:
            return f"UPDATE users SET team = {number}, score = {number} WHERE id = {key}"
        case 2:
            return f"DELETE FROM users WHERE id = {key}"
        case 3:
            return f"REPLACE INTO stories VALUES ({key}, {number}, {text}, {number}, '2021-01-0{other} 10:00:00')"
        case 4:
            return f"UPDATE stories SET author = {number}, title = {text} WHERE id = {key}"
        case 5:
            return f"DELETE FROM stories WHERE id = {key}"
        case 6 | 7:
            return f"INSERT INTO votes VALUES ({key}, {other}, {number}, {number}) ON DUPLICATE KEY UPDATE vote = {number}"
        case 8:
            return f"DELETE FROM votes WHERE story = {key} AND user = {other}"
        case 9:
            return f"INSERT INTO taggings VALUES ({number}, {key})"
        case 10:
            return f"DELETE FROM taggings WHERE tag = {key}"
        case _:
            return f"REPLACE INTO tags VALUES ({key}, {random.choice(['NULL', repr('web'), repr('DB')])}, {number})"


def difference(expected: Peer, found: Peer, line: str) -> str:
    other, sql = asked(line)
    is_ordered = " ORDER BY " in sql.upper().rsplit(")", 1)[-1]
    theirs, ours = expected.run(other), found.run(sql)
    return differences(Generated(sql, ordered=is_ordered), blurred(theirs, theirs), blurred(ours, theirs))


def folded(cell: bytes) -> bytes:
    letters = unicodedata.normalize("NFKD", cell.decode("utf-8", "replace")).casefold()
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).rstrip().encode()


def blurred(answer: Answer, expected: Answer) -> Answer:
    """Without what may differ: which of several equal texts is shown, and the last digits of a float."""
    if answer.rows is None:
        return answer
    rows = [
        tuple(
            None if cell is None else b"%.5g" % float(cell) if position in expected.floats else folded(cell)
            for position, cell in enumerate(row)
        )
        for row in answer.rows
    ]
    return Answer(rows)


def check(expected: Peer, found: Peer, queries: list[str], moment: str) -> None:
    problems = [f"{sql}\n  expected {each}" for sql in queries if (each := difference(expected, found, sql))]
    assert not problems, f"{moment}: {len(problems)} answers differ:\n" + "\n".join(problems)


def maintain(mariadb: MariaDB, found: Peer, seed: int, batches: int) -> None:
    random = Random(seed)
    queries = [sql for kind in KINDS for sql in statements(kind)]
    with mariadb.connect(mariadb.fresh_database()) as connection:
        expected = DriverPeer(connection)
        for sql in statements("tables"):
            assert not expected.run(sql).error and not found.run(sql).error
        # What is refused, or shows one of several equal texts, is the business of test_queries.
        queries = [sql for sql in queries if not difference(expected, found, sql)]
        check(expected, found, queries, "before any change")
        for number in range(batches):
            changes = [change(random) for _ in range(CHANGES_PER_BATCH)]
            for sql in changes:
                assert expected.run(sql).error == found.run(sql).error, sql
            check(expected, found, queries, f"seed {seed}, after batch {number} {changes}")


def test_views_follow_every_change(mariadb: MariaDB, tmp_path: Path) -> None:
    with EmbeddedPeer(tmp_path, shard_count=1) as found:
        maintain(mariadb, found, seed=1, batches=8)
        store = found.database.store
        assert isinstance(store, LocalStore) and len(store.hosted_views()) > 60


def test_views_of_three_workers_follow_every_change(mariadb: MariaDB, tmp_path: Path) -> None:
    follow(mariadb, tmp_path, seed=2, batches=5)


def follow(mariadb: MariaDB, folder: Path, seed: int, batches: int) -> None:
    server = MillraceServer(folder / "data", "--workers=3")
    try:
        with server.connect() as connection:
            found = DriverPeer(connection)
            found.run("CREATE DATABASE d")
            found.run("USE d")
            maintain(mariadb, found, seed, batches)
        assert all(shard["views"] > 60 for shard in server.status()["shards"])
    finally:
        server.kill()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10, 20))
def test_views_follow_many_changes(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    with EmbeddedPeer(tmp_path, shard_count=1) as found:
        maintain(mariadb, found, seed, batches=60)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(30, 33))
def test_views_of_three_workers_follow_many_changes(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    follow(mariadb, tmp_path, seed, batches=30)
