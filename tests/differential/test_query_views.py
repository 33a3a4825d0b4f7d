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

ROUNDS = 8
ASKED_FIRST = 6
"""So often before the answer is expected in shared memory."""


def follow(mariadb: MariaDB, folder: Path, seed: int) -> None:
    with EmbeddedViews(folder) as found:
        compare(mariadb, found, seed, ROUNDS)
        assert found.from_views > found.answers / 2, (found.from_views, found.answers)


def follow_shared(mariadb: MariaDB, folder: Path, seed: int) -> None:
    with SharedViews(folder) as found:
        compare(mariadb, found, seed, ROUNDS, ASKED_FIRST)
        assert found.from_views > found.answers / 4, (found.from_views, found.answers)


def test_random_views_follow_random_writes(mariadb: MariaDB, tmp_path: Path) -> None:
    follow(mariadb, tmp_path, seed=1)


def test_random_views_in_shared_memory_follow_random_writes(mariadb: MariaDB, tmp_path: Path) -> None:
    follow_shared(mariadb, tmp_path, seed=1)
