"""Random expressions give what MariaDB gives, where MySQL 8 and MariaDB agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dataflow.errors import MillraceError
from tests.mariadb import MariaDB
from tests.unit.dataflow.differential import connect, differences
from tests.unit.dataflow.random_expressions import Generator, Sample


@pytest.fixture(scope="module")
def cursor(mariadb: MariaDB) -> Iterator[Any]:
    connection = connect(mariadb)
    yield connection.cursor()
    connection.close()


def samples(seed: int, count: int, depth: int) -> list[Sample]:
    generator = Generator(seed)
    found: list[Sample] = []
    while len(found) < count:
        try:
            found.append(generator.sample(depth))
        except MillraceError:
            continue  # refused when built: comparing a TIME with a date needs the clock
    return found


@pytest.mark.parametrize(("seed", "depth"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_random_expressions_equal_mariadbs(cursor: Any, seed: int, depth: int) -> None:
    assert differences(cursor, samples(seed, 3000, depth)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_expressions_equal_mariadbs(cursor: Any, seed: int) -> None:
    assert differences(cursor, samples(seed, 10_000, 2)) == []
