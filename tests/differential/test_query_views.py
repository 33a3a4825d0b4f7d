"""Random SELECTs, nested, each asked until it is a maintained view, while random writes change its tables.

Every answer is MariaDB's. Each query is asked with several sets of constants, keys are evicted
and views retire now and then.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.view_comparison import Clients, EmbeddedViews, SharedViews, compare
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

QUERIES_PER_SCHEMA = 50
ASKED_FIRST = 6
"""So often before the answer is expected in shared memory."""


def follow(mariadb: MariaDB, folder: Path, seed: int, queries: int = QUERIES_PER_SCHEMA) -> None:
    with EmbeddedViews(folder) as found:
        compare(mariadb, found, seed, queries)
        assert found.from_views > found.answers / 3, (found.from_views, found.answers)


def follow_shared(mariadb: MariaDB, folder: Path, seed: int, queries: int = QUERIES_PER_SCHEMA) -> None:
    with SharedViews(folder) as found:
        compare(mariadb, found, seed, queries, ASKED_FIRST)
        assert found.from_views > found.answers / 4, (found.from_views, found.answers)


@pytest.mark.parametrize("seed", range(3))
def test_random_views_follow_random_writes(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    follow(mariadb, tmp_path, seed)


def test_random_views_in_shared_memory_follow_random_writes(mariadb: MariaDB, tmp_path: Path) -> None:
    follow_shared(mariadb, tmp_path, seed=2, queries=12)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_10000_random_views_follow_random_writes(mariadb: MariaDB, tmp_path: Path) -> None:
    for seed in range(1000, 1200):
        follow(mariadb, tmp_path / str(seed), seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_1000_random_views_in_shared_memory_follow_random_writes(mariadb: MariaDB, tmp_path: Path) -> None:
    for seed in range(100, 120):
        follow_shared(mariadb, tmp_path / str(seed), seed)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("workers", [2, 3])
def test_random_views_of_several_workers_follow_random_writes(mariadb: MariaDB, tmp_path: Path, workers: int) -> None:
    server = MillraceServer(tmp_path / "data", f"--workers={workers}")
    try:
        for seed in range(workers * 100, workers * 100 + 4):
            found = Clients(server.mysql_port, f"d{seed}")
            compare(mariadb, found, seed, QUERIES_PER_SCHEMA)
            found.close()
        assert all(shard["views"] > 5 for shard in server.status()["shards"])
    finally:
        server.kill()
