"""Random SELECTs, nested, each asked until it is a maintained view, while random writes change its tables.

Every answer is MariaDB's. Keys are evicted now and then, and each query is asked with several
sets of constants, so views are found by key, filled again, and shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from backend.execution.local_store import LocalStore
from tests.differential.comparison import Answer, DriverPeer, Peer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.query_changes import Shape, changes, shapes
from tests.differential.query_tables import definitions
from tests.differential.test_queries import REFUSED_BY_MARIADB
from tests.mariadb import MariaDB

QUERIES = 50
VARIANTS = 2
ROUNDS = 8
CHANGES_PER_ROUND_MAX = 12


@dataclass
class Tally:
    answers: int = 0
    from_views: int = 0


def compare(
    mariadb: MariaDB, found: Peer, seed: int, ask: Callable[[Shape], Answer], between: Callable[[Random], None], rounds: int = ROUNDS
) -> int:
    """Ask and change in turns; the number of answers."""
    random = Random(seed)
    statements, tables = definitions(random)
    count = 0
    with mariadb.connect(mariadb.fresh_database()) as connection:
        expected = DriverPeer(connection)
        expected.run("SET SESSION max_statement_time = 1")
        # Merged into an outer join, MariaDB's computed columns are sometimes not NULL where they have to be.
        expected.run("SET SESSION optimizer_switch = 'derived_merge=off'")
        for sql in statements:
            assert not expected.run(sql).error and not found.run(sql).error, sql
        asked = [each for shape in shapes(random, tables, QUERIES) for each in (shape, *(shape.varied(random) for _ in range(VARIANTS)))]
        history: list[str] = []
        for _ in range(rounds):
            problems: list[str] = []
            for shape in list(asked):
                statement = shape.statement
                theirs = expected.run(statement.elsewhere or statement.sql)
                is_dull = not history and theirs.rows == [] and random.random() < 0.8
                if theirs.error in REFUSED_BY_MARIADB or is_dull:
                    asked.remove(shape)
                    continue
                for _ in range(2 if not history else 1):
                    difference = differences(statement, theirs, ask(shape))
                    count += 1
                    if difference:
                        problems.append(f"{statement.sql}\n  expected {difference}")
                        break
            assert not problems, f"seed {seed}, {len(problems)} answers differ after {history}:\n" + "\n".join(problems)
            for _ in range(random.randint(1, CHANGES_PER_ROUND_MAX)):
                for sql in changes(random, tables):
                    difference = "" if (theirs := expected.run(sql)).error == (ours := found.run(sql)).error else f"{theirs} {ours}"
                    assert not difference, f"seed {seed}: {sql}: {difference}"
                    history.append(sql)
            between(random)
    return count


def compare_embedded(mariadb: MariaDB, folder: Path, seed: int) -> Tally:
    tally = Tally()
    with EmbeddedPeer(folder, shard_count=1) as found:
        store = found.database.store
        assert isinstance(store, LocalStore)
        host = store._views

        def uses() -> int:
            return sum(each.hits + each.misses for each in host.views.values())

        def ask(shape: Shape) -> Answer:
            before = uses()
            answer = found.run(shape.statement.sql)
            tally.from_views += uses() > before
            return answer

        def between(random: Random) -> None:
            if random.random() < 0.4:
                host._memory_bytes = int(host._engine.measure().total_bytes * random.random())
                host.enforce_limit()
            if random.random() < 0.4 and host.views:
                host.remove(random.choice(list(host.views)))

        tally.answers = compare(mariadb, found, seed, ask, between)
    return tally


@pytest.mark.parametrize("seed", range(4))
def test_random_views_follow_random_writes(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    tally = compare_embedded(mariadb, tmp_path, seed)
    assert tally.from_views > tally.answers / 2, tally
