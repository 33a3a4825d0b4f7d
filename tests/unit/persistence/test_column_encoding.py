"""Rows encoded by column are decoded as what they were, by row and by column."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dataflow.values.types import BIGINT, BLOB, DATE, DOUBLE, INT, SqlType, Value, decimal, text
from persistence.column_encoding import LENGTH_MAX
from persistence.columnar import ColumnDecoder
from persistence.layout import TableWriter
from persistence.row_encoding import RowCodec
from tests.tables import table_of

LENGTHS = (0, 1, 31, 32, 255, 256, 3000, LENGTH_MAX)


def column(kind: SqlType, chance: Random, count: int, has_nulls: bool) -> tuple[Any, list[Value]]:
    """As it is given, and its values."""
    values: list[Any]
    if kind in (INT, BIGINT, DATE):
        most = chance.choice([5, 200, 70_000, 1 << 40])
        values = [chance.randint(-most if kind == BIGINT else 0, most) for _ in range(count)]
        given = pa.int64()
    elif kind == DOUBLE:
        values, given = [chance.uniform(-1e9, 1e9) for _ in range(count)], pa.float64()
    elif kind == BLOB:
        values, given = [chance.randbytes(chance.choice(LENGTHS)) for _ in range(count)], pa.binary()
    elif kind == text():
        values, given = ["x" * chance.choice(LENGTHS) for _ in range(count)], pa.string()
    else:
        values, given = [Decimal(chance.randint(-10**9, 10**9)).scaleb(-kind.scale) for _ in range(count)], pa.decimal128(18, kind.scale)
    if has_nulls:
        values = [None if chance.random() < 0.3 else value for value in values]
        return pa.array(values, given), values
    return np.array(values) if given == pa.int64() else pa.array(values, given), values


@pytest.mark.parametrize("seed", range(30))
def test_rows_encoded_by_column_are_decoded_as_they_were(seed: int) -> None:
    chance = Random(seed)
    kinds = [chance.choice([INT, BIGINT, DATE, DOUBLE, BLOB, text(), decimal(18, 2), decimal(18, 9)]) for _ in range(chance.choice([1, 4, 15, 16, 20]))]
    count = 40
    columns = [column(kind, chance, count, chance.random() < 0.4) for kind in kinds]
    table = table_of(kinds)
    rows = list(zip(*[values for _, values in columns]))
    encoded = TableWriter(table).codec.encode_columns({place: given for place, (given, _) in enumerate(columns)})
    assert encoded is not None
    start, bodies = encoded
    assert RowCodec(table).decode_rows(bodies, start) == rows
    found = ColumnDecoder(table, range(len(kinds))).decode([start + body for body in bodies], 0)
    expected = ColumnDecoder(table, range(len(kinds))).decode(RowCodec(table).encode_rows(rows), 0)
    assert [each.to_pylist() for each in found] == [each.to_pylist() for each in expected]


def test_longer_texts_are_left_to_others() -> None:
    codec = RowCodec(table_of([INT, text()]))
    assert codec.encode_columns({0: np.arange(2), 1: pa.array(["", "x" * (LENGTH_MAX + 1)])}) is None
