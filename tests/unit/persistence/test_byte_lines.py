"""Rows that numpy encodes are read as what they are."""

from __future__ import annotations

import numpy as np
import pytest

from dataflow.types import BIGINT, INT
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
    encoded = writer.codec.encode_numbers(columns)
    assert encoded is not None
    start, values = encoded
    assert writer.codec.decode_rows(values, start) == rows
    assert [writer.decode(start + value) for value in values] == rows


def test_more_columns_than_a_short_array_has_are_left_to_others() -> None:
    writer = TableWriter(table_of([BIGINT] * 16))
    assert writer.codec.encode_numbers({n: np.arange(3) for n in range(16)}) is None
