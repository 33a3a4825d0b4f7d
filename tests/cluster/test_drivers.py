"""Real drivers against a running cluster: every statement is answered as MariaDB answers it."""

from __future__ import annotations

from random import Random

import pytest

from tests.cluster.drivers import PEERS
from tests.differential.comparison import compare
from tests.differential.generator import scenario
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

STATEMENTS_PER_TABLE = 60


@pytest.mark.parametrize("tables", [range(4), pytest.param(range(4, 16), marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("driver", PEERS)
def test_every_statement_is_answered_as_by_mariadb(
    driver: str, tables: range, shared_server: MillraceServer, mariadb: MariaDB
) -> None:
    name = f"d_{driver.replace('-', '_')}_{tables.start}"
    for each in (shared_server, mariadb):
        with each.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} COLLATE utf8mb4_general_ci")
    ours = PEERS[driver](shared_server.host, shared_server.mysql_port, name, False)
    theirs = PEERS[driver](mariadb.host, mariadb.port, name, True)
    ours.run("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
    theirs.run("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
    problems = []
    for seed in tables:
        statements = list(scenario(Random(seed + 5_000), f"t{seed}", STATEMENTS_PER_TABLE))
        found = compare(statements, theirs, ours)
        if found:
            problems.append(f"seed {seed}: {statements[0].sql}\n{found[0]}\n  and {len(found) - 1} more")
    assert not problems, f"{len(problems)} of {len(tables)} tables\n" + "\n\n".join(problems)
