"""Rows come back as they were stored, whatever columns were added and dropped since."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import CorruptState
from dataflow.schema import Table, TableColumn
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, JSON, Kind, Row, SqlType, decimal, text
from persistence.row_encoding import RowCodec
from tests.tables import table_of

VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    BIGINT_UNSIGNED: st.integers(0, 2**64 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    decimal(65, 30): st.integers(-(10**65) + 1, 10**65 - 1).map(lambda units: Decimal(f"{units}E-30")),
    text(50): st.text() | st.text(st.characters(categories=["Cs", "Ll"])),
    SqlType(Kind.LONGBLOB): st.binary(),
    SqlType(Kind.ENUM, members=("a", "b")): st.sampled_from(["a", "b", ""]),
    JSON: st.sampled_from(["{}", '[1, "\ud800"]', "null"]),
}
TYPES = list(VALUES)


def identical(left: Row, right: Row) -> bool:
    """Equal, of the same types, and with the same digits."""
    return [(type(value), str(value)) for value in left] == [(type(value), str(value)) for value in right]


def rows_of(table: Table) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.none() | VALUES[column.type] for column in table.columns))


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=20), st.data())
def test_a_row_comes_back_as_it_was(types: list[SqlType], data: st.DataObject) -> None:
    table = table_of(types, ())
    codec = RowCodec(table)
    rows = data.draw(st.lists(rows_of(table), max_size=3))
    encoded = codec.encode_rows(rows)
    assert encoded == [codec.encode(row) for row in rows]
    decoded = codec.decode_rows(encoded)
    assert len(decoded) == len(rows) and all(map(identical, decoded, rows))


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4), st.data())
def test_rows_of_every_format_read_as_the_table_is_now(types: list[SqlType], data: st.DataObject) -> None:
    table = table_of(types, ())
    next_id = len(types) + 1
    stored: list[tuple[bytes, dict[int, Any]]] = []
    for _ in range(data.draw(st.integers(1, 5))):
        row = data.draw(rows_of(table))
        by_id = {column.id: value for column, value in zip(table.columns, row)}
        stored.append((RowCodec(table).encode(row), by_id))
        columns = list(table.columns)
        if len(columns) > 1 and data.draw(st.booleans()):
            columns.pop(data.draw(st.integers(0, len(columns) - 1)))
        else:
            kind = data.draw(st.sampled_from(TYPES))
            column = TableColumn(next_id, f"c{next_id}", kind, missing=data.draw(st.none() | VALUES[kind]))
            columns.insert(data.draw(st.integers(0, len(columns))), column)
            next_id += 1
        formats = (*table.formats, tuple(column.id for column in columns))
        table = replace(table, columns=tuple(columns), formats=formats)
    codec = RowCodec(table)
    for encoded, by_id in stored:
        expected = tuple(by_id.get(column.id, column.missing) for column in table.columns)
        assert identical(codec.decode(encoded), expected)


@given(st.data())
def test_a_format_may_leave_columns_out_and_reorder_them(data: st.DataObject) -> None:
    table = table_of([BIGINT, text(50), DOUBLE], ())
    computed = replace(table.columns[1], missing="computed when read")
    table = replace(table, columns=(table.columns[0], computed, table.columns[2]), formats=((3, 1),))
    codec = RowCodec(table)
    row = data.draw(rows_of(table))
    expected = (row[0], "computed when read", row[2])
    assert identical(codec.decode(codec.encode(row)), expected)
    assert codec.encode_rows([row]) == [codec.encode(row)]


@given(st.binary(max_size=30))
def test_other_bytes_are_corrupt_or_a_row_of_the_right_types(data: bytes) -> None:
    codec = RowCodec(table_of([BIGINT, text(50), decimal(5, 2)], ()))
    for candidate in (data, b"\0\0" + data, b"\x80\0" + data, b"\0\0\x93" + data):
        try:
            row = codec.decode(candidate)
        except CorruptState:
            continue
        assert len(row) == 3
        assert isinstance(row[0], int | None) and isinstance(row[1], str | None)
        assert isinstance(row[2], Decimal | None)


@pytest.mark.parametrize("cut", range(12))
def test_a_row_that_was_cut_off_is_corrupt(cut: int) -> None:
    codec = RowCodec(table_of([BIGINT, text(50)], ()))
    whole = codec.encode((300, "hello"))
    assert len(whole) == 12
    with pytest.raises(CorruptState):
        codec.decode(whole[:cut])


def test_a_row_of_an_unknown_format_is_corrupt() -> None:
    codec = RowCodec(table_of([BIGINT], ()))
    with pytest.raises(CorruptState, match="unknown format"):
        codec.decode(b"\0\5" + codec.encode((1,))[2:])
