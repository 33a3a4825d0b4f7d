"""Random expressions without parentheses: operators bind as they do in MariaDB.

Left out is what MySQL's grammar refuses and MariaDB's does not: one of IN, BETWEEN, LIKE and REGEXP beside another.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.differential.comparison import DriverPeer, Peer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

LOOSE = ("AND", "&&", "XOR", "OR")
COMPARISONS = ("=", "<=>", ">=", ">", "<=", "<", "<>", "!=")
TIGHT = ("+", "-", "*", "DIV", "%", "MOD", "|", "&", "^", "<<", ">>")
PREDICATES = ("IN (1, 2)", "NOT IN (0, 3)", "BETWEEN 0 AND 2", "NOT BETWEEN 1 AND 2 + 1", "LIKE 1", "NOT LIKE '1%'", "REGEXP '1'")
TESTS = ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN")
MODES = ("", "PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE", "PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE")


def _tight(random: Random, operators: tuple[str, ...]) -> str:
    """Operators that bind more tightly than a comparison."""
    found = ""
    for number in range(random.randint(1, 3)):
        found += f" {random.choice(operators)} " if number else ""
        found += random.choice(("", "", "", "-", "~", "!")) + random.choice(("0", "1", "2", "3", "5", "NULL"))
    return found


def _compared(random: Random, tight: tuple[str, ...]) -> str:
    found = random.choice(("", "", "", "NOT "))
    for number in range(random.randint(1, 3)):
        found += f" {random.choice(COMPARISONS)} " if number else ""
        found += _tight(random, tight)
        draw = random.random()
        found += f" {random.choice(PREDICATES)}" if draw < 0.2 else f" {random.choice(TESTS)}" if draw < 0.3 else ""
    return found


def expression(random: Random, mode: str) -> str:
    concat = "PIPES_AS_CONCAT" in mode
    loose, tight = (LOOSE, (*TIGHT, "||", "||")) if concat else ((*LOOSE, "||"), TIGHT)
    found = _compared(random, tight)
    for _ in range(random.randint(0, 2)):
        found += f" {random.choice(loose)} {_compared(random, tight)}"
    return found


@pytest.mark.parametrize("mode", MODES)
def test_operators_bind_as_in_mariadb(mariadb: MariaDB, tmp_path: Path, mode: str) -> None:
    compare(mariadb, tmp_path, mode, 1, 120)


@pytest.mark.slow
def test_operators_of_8000_expressions_bind_as_in_mariadb(mariadb: MariaDB, tmp_path: Path) -> None:
    for seed, mode in enumerate(MODES, 10):
        (tmp_path / str(seed)).mkdir()
        compare(mariadb, tmp_path / str(seed), mode, seed, 2000)


def compare(mariadb: MariaDB, folder: Path, mode: str, seed: int, count: int) -> None:
    random = Random(seed)
    problems = []
    asked = 0
    with mariadb.connect(mariadb.fresh_database()) as connection, EmbeddedPeer(folder, sql_mode=mode) as found:
        found.settings = replace(found.settings, sql_mode=frozenset(mode.split(",")))
        expected: Peer = DriverPeer(connection, mode)
        while asked < count:
            sql = f"SELECT {expression(random, mode)}"
            theirs = expected.run(sql)
            if theirs.error:  # NOT where it is no operand, numbers out of range
                continue
            asked += 1
            ours = found.run(sql)
            if ours.error == 1690:  # of an operand that MariaDB did not look at
                continue
            difference = differences(Generated(sql), theirs, ours)
            if difference:
                problems.append(f"{sql}\n  expected {difference}")
    assert not problems, f"{mode!r}: {len(problems)} answers differ:\n" + "\n".join(problems[:20])
