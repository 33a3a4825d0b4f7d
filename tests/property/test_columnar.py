"""Rows decoded by column are those decoded one by one, whatever their formats; dates are those of a calendar."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.schema import TableColumn
from dataflow.values.arrow_values import arrow_array, arrow_field, arrow_type, sql_type_of
from dataflow.values.temporal.packed import pack
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, JSON, Kind, SqlType, decimal, text
from persistence.columnar import ColumnDecoder
from persistence.row_encoding import RowCodec
from tests.tables import table_of

MOMENTS = st.builds(
    pack, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31),
    st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999),
)  # fmt: skip
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    SqlType(Kind.TINYINT): st.integers(-128, 127),
    SqlType(Kind.SMALLINT, unsigned=True): st.integers(0, 65535),
    SqlType(Kind.INT): st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    BIGINT_UNSIGNED: st.integers(0, 2**64 - 1),
    SqlType(Kind.BIT, length=64): st.integers(0, 2**64 - 1),
    SqlType(Kind.YEAR): st.integers(0, 2155),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    SqlType(Kind.FLOAT, scale=-1): st.floats(allow_nan=False, allow_infinity=False, width=32),
    decimal(10, 2): st.integers(-(10**10) + 1, 10**10 - 1).map(lambda units: Decimal(f"{units}E-2")),
    decimal(65, 30): st.integers(-(10**65) + 1, 10**65 - 1).map(lambda units: Decimal(f"{units}E-30")),
    SqlType(Kind.DATE): st.builds(pack, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)),
    SqlType(Kind.DATETIME, scale=6): MOMENTS,
    SqlType(Kind.TIMESTAMP, scale=6): MOMENTS,
    SqlType(Kind.TIME, scale=6): st.integers(-3_020_399_000_000, 3_020_399_000_000),
    text(50): st.text() | st.text(st.characters(categories=["Cs", "Ll"])) | st.text(min_size=30, max_size=300),
    SqlType(Kind.LONGBLOB): st.binary() | st.binary(min_size=250, max_size=300) | st.just(b"\1" * 70_000),
    JSON: st.sampled_from(["{}", "[1]", "null"]),
}
TYPES = list(VALUES)


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=17), st.data())
def test_columns_are_those_of_the_rows(types: list[SqlType], data: st.DataObject) -> None:
    table = table_of(types, ())
    rows = data.draw(st.lists(st.tuples(*(st.none() | VALUES[each] for each in types)), min_size=1, max_size=8))
    positions = data.draw(st.lists(st.integers(0, len(types) - 1), max_size=5))
    stored = [b"version " + each for each in RowCodec(table).encode_rows(rows)]
    found = ColumnDecoder(table, positions).decode(stored, 8)
    for position, column in zip(positions, found, strict=True):
        column.validate(full=True)
        assert column.type == arrow_type(types[position])
        assert column.equals(arrow_array([row[position] for row in rows], types[position]))


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4), st.sampled_from(TYPES), st.data())
def test_rows_from_before_a_column_have_what_it_says(types: list[SqlType], added: SqlType, data: st.DataObject) -> None:
    table = table_of(types, ())
    row = data.draw(st.tuples(*(st.none() | VALUES[each] for each in types)))
    column = TableColumn(len(types) + 1, "added", added, missing=data.draw(st.none() | VALUES[added]))
    columns = (column, *table.columns[1:])
    later = replace(table, columns=columns, formats=(*table.formats, tuple(each.id for each in columns)))
    new = (data.draw(st.none() | VALUES[added]), *row[1:])
    old_rows, mixed = [RowCodec(table).encode(row)] * 3, [RowCodec(table).encode(row), RowCodec(later).encode(new)]
    decoder = ColumnDecoder(later, range(len(columns)))
    for stored, rows in ((old_rows, [(column.missing, *row[1:])] * 3), (mixed, [(column.missing, *row[1:]), new])):
        for position, found in enumerate(decoder.decode(stored, 0)):
            assert found.equals(arrow_array([each[position] for each in rows], columns[position].type))


@given(st.integers(1, 9999), st.integers(0, 13), st.integers(0, 31), st.integers(0, 86_399_999_999))
def test_dates_are_those_of_the_calendar(year: int, month: int, day: int, microseconds: int) -> None:
    month = min(month, 12)
    try:
        expected = date(year, month, day)
    except ValueError:
        expected = None
    [found] = arrow_array([pack(year, month, day)], SqlType(Kind.DATE)).to_pylist()
    assert found == expected
    seconds, fraction = divmod(microseconds, 1_000_000)
    packed = pack(year, month, day, seconds // 3600, seconds // 60 % 60, seconds % 60, fraction)
    moment = None if expected is None else datetime(year, month, day) + timedelta(microseconds=microseconds)
    assert arrow_array([packed], SqlType(Kind.DATETIME)).to_pylist() == [moment]
    [found] = arrow_array([packed], SqlType(Kind.TIMESTAMP)).to_pylist()
    assert found == (None if moment is None else moment.replace(tzinfo=UTC))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_field_knows_its_sql_type(kind: SqlType) -> None:
    found = sql_type_of(arrow_field("c", kind, False))
    assert (found.kind, found.length, found.scale, found.unsigned) == (kind.kind, kind.length, kind.scale, kind.unsigned)
