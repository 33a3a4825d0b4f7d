"""The same random statements through a MySQL driver, against a running server and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.differential.comparison import DriverPeer, compare
from tests.differential.generator import alterations, scenario, transactions
from tests.differential.test_statements import STATEMENTS_PER_TABLE, Generator
from tests.mariadb import MariaDB
from tests.serving import MillraceServer


@pytest.fixture(scope="module")
def millrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("served"), "--workers=2", "--durability=os")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("generate", "table_count"), [(scenario, 60), (transactions, 60), (alterations, 15)])
def test_a_running_server_answers_as_mariadb(
    generate: Generator, table_count: int, millrace: MillraceServer, mariadb: MariaDB
) -> None:
    expected = mariadb.connect(mariadb.fresh_database())
    found = millrace.connect("d", init_command="SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
    with expected, found:
        peers = DriverPeer(expected), DriverPeer(found)
        for seed in range(table_count):
            name = f"{generate.__name__}_{seed}"
            statements = list(generate(Random(seed), name, STATEMENTS_PER_TABLE))
            problems = compare(statements, *peers)
            assert not problems, f"seed {seed}: {statements[0].sql}\n{problems[0]}\n  and {len(problems) - 1} more"
