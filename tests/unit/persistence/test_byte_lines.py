"""Rows that numpy encodes are read as what they are."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from dataflow.values.types import BIGINT, INT
from persistence.layout import TableWriter
from tests.tables import table_of

ENDS = [-(1 << 63), -1, 0, 1, 127, 128, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 63) - 1]


@pytest.mark.parametrize("least", ENDS)
@pytest.mark.parametrize("most", ENDS)
def test_numbers_of_any_size_are_decoded_as_they_were(least: int, most: int) -> None:
    if least > most:
        least, most = most, least
    writer = TableWriter(table_of([BIGINT, INT, BIGINT]))
    chance = np.random.default_rng(7)
    middle = chance.integers(least, most, 100, endpoint=True)
    columns = {0: np.concatenate([[least, most], middle]), 1: np.arange(102), 2: np.concatenate([middle, [most, least]])}
    rows = list(zip(*[columns[n].tolist() for n in range(3)]))
    encoded = writer.codec.encode_columns(columns)
    assert encoded is not None
    start, values = encoded
    assert writer.codec.decode_rows(values, start) == rows
    assert [writer.decode(start + value) for value in values] == rows


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_that_are_alike_in_some_columns_are_one_with_their_number(seed: int) -> None:
    chance = np.random.default_rng(seed)
    writer = TableWriter(table_of([BIGINT, INT, BIGINT]))
    ends = chance.choice(ENDS, 2)
    columns = {0: chance.integers(min(ends), max(ends), 300, endpoint=True), 1: np.sort(chance.integers(0, 300, 300)), 2: np.arange(300)}
    seen = tuple(chance.choice(3, chance.integers(0, 4), replace=False).tolist())
    encoded = writer.codec.encode_columns(columns)
    assert encoded is not None
    found = writer.codec.decode_alike(encoded[1], encoded[0], seen)
    rows = list(zip(*[columns[n].tolist() for n in range(3)]))
    assert found is not None
    expected = [(key, len(list(some))) for key, some in groupby(tuple(row[n] for n in seen) for row in rows)]
    assert [(tuple(row[n] for n in seen), count) for row, count in found] == expected
    assert {row for row, _ in found} <= set(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2, 3), (1, None, 3)],
        [(1, 2, 3), (1, 200, 3)],
        [(1, 200, 3), (1, 2, 300)],
        [(-1, 2, 3), (-2, 2, 3)],
        [(300, -300, 3), (300, 300, 3)],
    ],
)
def test_rows_whose_columns_stand_elsewhere_or_are_no_numbers_are_left_alone(rows: list[tuple[int | None, ...]]) -> None:
    writer = TableWriter(table_of([BIGINT, INT, BIGINT]))
    start, values = writer.codec.encode_apart(rows)  # type: ignore[arg-type]
    found = writer.codec.decode_alike(values, start, (0, 1, 2))
    assert found is None or found == [(row, 1) for row in rows]
    assert writer.codec.decode_alike([start + value for value in values], b"", (0, 1, 2)) is None
