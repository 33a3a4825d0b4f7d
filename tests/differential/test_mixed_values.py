"""Random expressions over values of different kinds: every answer is MariaDB's."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pymysql
import pytest

from backend.execution.embedded import open_embedded
from tests.differential.comparison import DriverPeer, differences
from tests.differential.mixed_values import MixedValues, definitions
from tests.mariadb import MariaDB
from tests.wire.server import ServerThread


@pytest.fixture(scope="module")
def millrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    folder = tmp_path_factory.mktemp("mixed")

    async def open_database() -> Any:
        return await open_embedded(folder, shard_count=1)

    with ServerThread(open_database) as server:
        yield server


@pytest.mark.parametrize("seed", range(2))
def test_values_of_different_kinds_meet_as_in_mariadb(mariadb: MariaDB, millrace: ServerThread, seed: int) -> None:
    compare(mariadb, millrace, seed, 120)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_16000_expressions_of_different_kinds_are_as_in_mariadb(mariadb: MariaDB, millrace: ServerThread) -> None:
    for seed in range(1_000, 1_040):
        compare(mariadb, millrace, seed, 400)


def compare(mariadb: MariaDB, millrace: ServerThread, seed: int, count: int) -> None:
    random = Random(seed)
    problems = []
    names = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
    found = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", autocommit=True, init_command=names)
    with mariadb.connect(mariadb.fresh_database()) as expected, found:
        peers = DriverPeer(expected), DriverPeer(found)
        peers[1].run(f"CREATE DATABASE d{seed} COLLATE utf8mb4_general_ci")
        peers[1].run(f"USE d{seed}")
        for peer in peers:
            peer.run("SET timestamp = 1700000000")  # a TIME among dates is that time of today
            for sql in definitions(Random(seed)):
                assert not peer.run(sql).error, sql
        for statement in MixedValues(random).statements(count):
            theirs, ours = (peer.run(statement.sql) for peer in peers)
            if difference := differences(statement, theirs, ours):
                problems.append(f"{statement.sql}\n  expected {difference}")
    assert not problems, f"seed {seed}, {len(problems)} answers differ:\n" + "\n".join(problems)
