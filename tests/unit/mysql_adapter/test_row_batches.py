"""Rows made all at once are, byte for byte, those made one by one."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backend.execution.answering.instant import Cell
from backend.shared_memory.columns import Entries
from backend.shared_memory.entry import EntryLayout
from dataflow.values.types import INTEGERS, Kind, Row, SqlType, text
from mysql_adapter.wire.results import binary_encoder, text_encoder
from mysql_adapter.wire.row_batches import BINARY_BYTES, row_batches

INT, BIGINT, UNSIGNED = SqlType(Kind.MEDIUMINT), SqlType(Kind.BIGINT), SqlType(Kind.BIGINT, unsigned=True)
TINY, SMALL = SqlType(Kind.TINYINT), SqlType(Kind.SMALLINT, unsigned=True)
TEXT, BLOB = text(300), SqlType(Kind.BLOB)
EDGES = [0, 1, 9, 10, 99, 999, 1000, 1001, 9999, 10_000, 10_001, 99_999, 100_000, 999_999, 1_000_000, 9_999_999]
LARGE = [10_000_000, -1, -10, 2**31, 10**18, 2**63 - 1, -(2**63)]
LENGTHS = [0, 1, 30, 31, 32, 33, 249, 250]


def entries_of(types: list[SqlType], rows: list[Row]) -> Entries:
    """As they are copied: all as long as the longest, with anything behind the others."""
    layout = EntryLayout(types)
    made = []
    for row in rows:
        payload = msgspec.msgpack.encode([row])
        made.append(layout.head([row], payload, 0) + payload)
    size = max([(len(each) + 7) // 8 for each in made], default=1)
    data = b"".join(each.ljust(8 * size, b"\xee") for each in made)
    head = 8 * (len(types) + 2)
    words = np.frombuffer(data, np.int64).reshape(-1, size).copy()
    return Entries(True, words, np.arange(len(rows)) * 8 * size + head, len(types))


def values_of(kind: SqlType, large: bool) -> st.SearchStrategy[object]:
    if kind.kind in INTEGERS:
        numbers = [*EDGES, *(LARGE if large else [])]
        if kind.kind is not Kind.BIGINT:
            limit = 1 << 8 * BINARY_BYTES[kind.kind] - 1
            numbers = [each for each in numbers if -limit <= each < limit]
        if kind.unsigned:
            numbers = [each for each in numbers if each >= 0]
            numbers += [2**64 - 1] if large and kind is UNSIGNED else []
        return st.sampled_from(numbers)
    if kind is TEXT:
        return st.sampled_from(LENGTHS).map(lambda length: "ü" * (length // 2) + "x" * (length % 2))
    return st.sampled_from(LENGTHS).map(lambda length: b"\xff\0" * (length // 2) + b"\xfb" * (length % 2))


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[SqlType], list[Cell], list[Row]]:
    types = draw(st.lists(st.sampled_from([INT, TINY, SMALL, BIGINT, UNSIGNED, TEXT, BLOB]), min_size=1, max_size=6))
    large, with_nulls = draw(st.booleans()), draw(st.booleans())
    values = [values_of(kind, large) for kind in types]
    row = st.tuples(*[st.none() | each if with_nulls else each for each in values])
    places = draw(st.lists(st.sampled_from(range(len(types))), min_size=1, unique=True))
    numbers = {INT: [7], BIGINT: [0, 10**8], UNSIGNED: [0]}
    cells = [Cell(place, draw(st.sampled_from([None, *numbers.get(types[place], [])]))) for place in places]
    return types, cells, draw(st.lists(row, max_size=6))


def check(types: list[SqlType], cells: list[Cell], rows: list[Row], first: int) -> None:
    sent = tuple([types[cell.place] for cell in cells])
    output = [tuple([cell.number if row[cell.place] is None else row[cell.place] for cell in cells]) for row in rows]
    for binary, encoder in ((False, text_encoder), (True, binary_encoder)):
        batch = row_batches(cells, types, sent, "utf-8", binary)
        assert batch is not None
        found = batch.encoded(entries_of(types, rows), first)
        assert found is not None and bytes(found) == encoder(sent, "utf-8", "UTC")(output, first)[0]


@given(batches(), st.sampled_from([0, 5, 254, 255]))
def test_rows_at_once_are_the_rows_one_by_one(batch: tuple[list[SqlType], list[Cell], list[Row]], first: int) -> None:
    check(*batch, first)


def test_numbers_of_packets_begin_again_after_255() -> None:
    rows: list[Row] = [(number, f"title {number}", None if number % 3 else number * 7) for number in range(700)]
    check([INT, TEXT, BIGINT], [Cell(0), Cell(2), Cell(1)], rows, 7)
    check([INT, TEXT, BIGINT], [Cell(1), Cell(2, 0)], rows, 7)


def test_a_text_of_more_than_250_bytes_is_left_to_others() -> None:
    batch = row_batches([Cell(0)], [TEXT], [TEXT], "utf-8", False)
    assert batch is not None
    for length in (251, 255, 256, 300):
        assert batch.encoded(entries_of([TEXT], [("x",), ("y" * length,)]), 0) is None


def test_other_types_and_character_sets_are_left_to_others() -> None:
    assert row_batches([Cell(0)], [TEXT], [TEXT], "latin-1", False) is None
    assert row_batches([Cell(0), Cell(0)], [INT], [INT, INT], "utf-8", False) is None
    zerofill = SqlType(Kind.INT, zerofill=True)
    others = [zerofill, *[SqlType(kind) for kind in (Kind.DECIMAL, Kind.DOUBLE, Kind.DATE, Kind.YEAR, Kind.BIT, Kind.TIME)]]
    for kind in others:
        assert row_batches([Cell(0)], [kind], [kind], "utf-8", False) is None
    assert row_batches([Cell(0)], [BLOB], [BLOB], "latin-1", False) is not None
    assert row_batches([Cell(0)], [zerofill], [zerofill], "utf-8", True) is not None


def test_as_many_binary_columns_as_have_room_for_their_nulls_are_made_at_once() -> None:
    for count in (6, 7, 54):
        row: Row = tuple([None if place % 3 == 0 else place for place in range(count)])
        check([INT] * count, [Cell(place) for place in range(count)], [row, (5,) * count, (None,) * count], 3)
    many = [INT] * 55
    assert row_batches([Cell(place) for place in range(55)], many, many, "utf-8", True) is None
