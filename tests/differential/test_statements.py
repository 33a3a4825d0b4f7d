"""Random statements answered by MariaDB and by the engine, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from dataflow.values.modes import DEFAULT_SQL_MODE
from tests.differential.comparison import DriverPeer, compare
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated, alterations, scenario, transactions
from tests.mariadb import MariaDB

STATEMENTS_PER_TABLE = 50

Generator = Callable[[Random, str, int], Iterator[Generated]]


def check(
    mariadb: MariaDB, folder: Path, generate: Generator, seeds: range, sql_mode: str = DEFAULT_SQL_MODE
) -> None:
    """No statement about the tables of these seeds has another answer here than there."""
    connection = mariadb.connect(mariadb.fresh_database())
    with connection, EmbeddedPeer(folder, sql_mode=sql_mode) as embedded:
        peer = DriverPeer(connection, sql_mode)
        problems = []
        for seed in seeds:
            statements = list(generate(Random(seed), f"t{seed}", STATEMENTS_PER_TABLE))
            found = compare(statements, peer, embedded)
            if found:
                # what comes after the first difference may follow from it
                problems.append(f"seed {seed}: {statements[0].sql}\n{found[0]}\n  and {len(found) - 1} more")
        assert not problems, f"{len(problems)} of {len(seeds)} tables\n" + "\n\n".join(problems[:20])


@pytest.mark.parametrize("block", range(4))
def test_every_statement_is_answered_as_by_mariadb(block: int, mariadb: MariaDB, tmp_path: Path) -> None:
    check(mariadb, tmp_path, scenario, range(block * 15, block * 15 + 15))


def test_every_statement_of_a_transaction_is_answered_as_by_mariadb(mariadb: MariaDB, tmp_path: Path) -> None:
    check(mariadb, tmp_path, transactions, range(30))


def test_tables_that_change_answer_as_in_mariadb(mariadb: MariaDB, tmp_path: Path) -> None:
    check(mariadb, tmp_path, alterations, range(12))


def test_without_strict_mode_values_are_made_to_fit_as_by_mariadb(mariadb: MariaDB, tmp_path: Path) -> None:
    check(mariadb, tmp_path, scenario, range(15), sql_mode="")


@pytest.mark.slow
@pytest.mark.parametrize("generate", (scenario, transactions, alterations))
@pytest.mark.parametrize("block", range(20))
def test_many_more_statements_are_answered_as_by_mariadb(
    generate: Generator, block: int, mariadb: MariaDB, tmp_path: Path
) -> None:
    check(mariadb, tmp_path, generate, range(1_000 + block * 40, 1_000 + block * 40 + 40))
