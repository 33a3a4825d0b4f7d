"""Encoded keys sort like MySQL sorts the values, and ranges hold just the right keys.

The oracles: Python's own comparison of the values, and MariaDB's ORDER BY.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.schema import Index, KeyPart
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, INT, Kind, SqlType, Value, decimal, text
from persistence.key_encoding import KeyEncoding
from persistence.key_range import comparison_range
from tests.mariadb import MariaDB
from tests.tables import table_of

MEMBERS = ("zebra", "ant", "", "cat")
BINARY_TEXT = text(30, "utf8mb4_bin")
GENERAL_TEXT = text(30, "utf8mb4_general_ci")
UNICODE_TEXT = text(30, "utf8mb4_unicode_ci")
VARBINARY = SqlType(Kind.VARBINARY, length=30)
ENUM = SqlType(Kind.ENUM, members=MEMBERS)
SET = SqlType(Kind.SET, members=("x", "y", "z"))
BASE = b"r\0\0\0\7"


def _single(number: float) -> float:
    return float(struct.unpack(">f", struct.pack(">f", number))[0])


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**digits - 1
    return st.integers(-limit, limit).map(lambda units: Decimal(f"{units}E-{scale}"))


# utf8mb4_bin pads with spaces, which Python's comparison does not.
TEXTS = st.text(st.characters(codec="utf-8", min_codepoint=33), max_size=6) | st.text("a\xff", max_size=4)

VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    BIGINT_UNSIGNED: st.integers(0, 2**64 - 1),
    SqlType(Kind.TIME): st.integers(-(838 * 3600 * 10**6), 838 * 3600 * 10**6),
    SqlType(Kind.BIT, length=64): st.integers(0, 2**64 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    SqlType(Kind.FLOAT, scale=-1): st.floats(-1e30, 1e30).map(_single),
    decimal(10, 2): _decimals(10, 2),
    decimal(65, 30): _decimals(65, 30),
    BINARY_TEXT: TEXTS,
    VARBINARY: st.binary(max_size=6) | st.lists(st.sampled_from([0, 1, 254, 255])).map(bytes),
    ENUM: st.sampled_from(MEMBERS),
    SET: st.sets(st.sampled_from(SET.members)).map(
        lambda chosen: ",".join(m for m in SET.members if m in chosen)
    ),
}


def rank(kind: SqlType, value: Any) -> Any:
    """Something that Python compares as MySQL compares the value."""
    if kind is ENUM:
        return MEMBERS.index(value)
    if kind is SET:
        return sum(1 << SET.members.index(member) for member in value.split(",") if member)
    return value.encode() if isinstance(value, str) else value


def compare(kind: SqlType, left: Value, right: Value) -> int:
    if left is None or right is None:
        return (left is not None) - (right is not None)
    a, b = rank(kind, left), rank(kind, right)
    return int(a > b) - int(a < b)


@st.composite
def indexed_rows(draw: st.DrawFn) -> tuple[list[SqlType], list[bool], list[tuple[Value, ...]]]:
    """The types of an index's columns, which of them are descending, and some rows."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    descending = [draw(st.booleans()) for _ in types]
    row = st.tuples(*(st.none() | VALUES[kind] for kind in types))
    return types, descending, draw(st.lists(row, min_size=2, max_size=8))


def encoding_of(types: list[SqlType], descending: list[bool]) -> KeyEncoding:
    parts = tuple(KeyPart(number, descending=down) for number, down in enumerate(descending, 1))
    return KeyEncoding(table_of(types, ()), Index(2, "i", parts))


@given(indexed_rows())
def test_keys_sort_as_their_values_do(
    case: tuple[list[SqlType], list[bool], list[tuple[Value, ...]]],
) -> None:
    types, descending, rows = case
    encoding = encoding_of(types, descending)

    def order(left: tuple[Value, ...], right: tuple[Value, ...]) -> int:
        for kind, down, a, b in zip(types, descending, left, right):
            if result := compare(kind, a, b):
                return -result if down else result
        return 0

    for left in rows:
        for right in rows:
            a, b = encoding.encode(left), encoding.encode(right)
            assert int(a > b) - int(a < b) == order(left, right)
    assert encoding.encode_rows(rows) == [encoding.encode(row) for row in rows]
    numbers = [row for row in rows if all(type(value) is int and -(1 << 63) <= value < 1 << 63 for value in row)]
    at_once = encoding.encode_numbers({place: np.array(column) for place, column in enumerate(zip(*numbers))})
    if at_once is not None:
        assert [line.tobytes() for line in at_once] == [encoding.encode(row) for row in numbers]
    assert [encoding.contains_null(row) for row in rows] == [None in row for row in rows]
    assert sorted(rows, key=encoding.encode) == sorted(rows, key=cmp_to_key(order))


@given(indexed_rows(), st.data())
def test_an_equality_range_holds_the_rows_with_equal_leading_values(
    case: tuple[list[SqlType], list[bool], list[tuple[Value, ...]]], data: st.DataObject
) -> None:
    types, descending, rows = case
    encoding = encoding_of(types, descending)
    count = data.draw(st.integers(0, len(types)))
    wanted = rows[0][:count]
    start, stop = comparison_range(encoding, BASE, wanted, ())
    for row in rows:
        inside = start <= BASE + encoding.encode(row) < stop
        assert inside == all(compare(kind, a, b) == 0 for kind, a, b in zip(types, row, wanted))


@given(
    indexed_rows(),
    st.lists(st.sampled_from(["<", "<=", ">", ">=", "IS NOT NULL"]), min_size=1, max_size=2),
    st.data(),
)
def test_a_comparison_range_holds_the_rows_that_fulfil_it(
    case: tuple[list[SqlType], list[bool], list[tuple[Value, ...]]], operators: list[Any], data: st.DataObject
) -> None:
    types, descending, rows = case
    encoding = encoding_of(types, descending)
    count = data.draw(st.integers(0, len(types) - 1))
    kind = types[count]
    bounds = [data.draw(st.sampled_from([row[count] for row in rows]) | VALUES[kind]) for _ in operators]
    start, stop = comparison_range(encoding, BASE, rows[0][:count], list(zip(operators, bounds)))
    for row in rows:
        fulfilled = all(compare(k, a, b) == 0 for k, a, b in zip(types[:count], row, rows[0]))
        for operator, bound in zip(operators, bounds):
            fulfilled = fulfilled and holds(kind, row[count], operator, bound)
        assert (start <= BASE + encoding.encode(row) < stop) == fulfilled


def holds(kind: SqlType, value: Value, operator: str, bound: Value) -> bool:
    if operator == "IS NOT NULL" or value is None or bound is None:
        return operator == "IS NOT NULL" and value is not None
    sign = compare(kind, value, bound)
    return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]


NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.decimals(-1000, 1000, places=4)
    | st.floats(-1000, 1000)
    | _decimals(65, 0)
)


@given(
    st.sampled_from([INT, BIGINT_UNSIGNED, decimal(10, 2), decimal(65, 30)]),
    st.booleans(),
    st.sampled_from(["=", "<", "<=", ">", ">="]),
    NUMBERS,
    st.data(),
)
def test_any_number_can_bound_a_number(
    kind: SqlType, down: bool, operator: Any, bound: Any, data: st.DataObject
) -> None:
    encoding = encoding_of([kind], [down])
    if operator == "=":
        start, stop = comparison_range(encoding, BASE, (bound,), ())
    else:
        start, stop = comparison_range(encoding, BASE, (), [(operator, bound)])
    value = data.draw(VALUES[kind] | st.integers(0, 1000))
    expected = value == bound if operator == "=" else holds(INT, value, operator, bound)
    row = (Decimal(value) if kind.kind is Kind.DECIMAL else value,)
    assert (start <= BASE + encoding.encode(row) < stop) == expected


@given(
    st.lists(st.text("ab", max_size=5), min_size=2), st.sampled_from(["<", "<=", ">", ">="]), st.booleans()
)
def test_a_key_prefix_gives_a_range_that_misses_no_row(texts: list[str], operator: Any, down: bool) -> None:
    table = table_of([BINARY_TEXT], ())
    encoding = KeyEncoding(table, Index(2, "i", (KeyPart(1, prefix=2, descending=down),)))
    start, stop = comparison_range(encoding, BASE, (), [(operator, texts[0])])
    for value in texts:
        assert encoding.encode((value,)) == encoding.encode((value[:2],))
        if holds(BINARY_TEXT, value, operator, texts[0]):
            assert start <= BASE + encoding.encode((value,)) < stop


DECLARATIONS = {
    "bigint unsigned": BIGINT_UNSIGNED,
    "bigint": BIGINT,
    "double": DOUBLE,
    "decimal(65,30)": decimal(65, 30),
    "enum('zebra','ant','','cat')": ENUM,
    "set('x','y','z')": SET,
    "varbinary(30)": VARBINARY,
    "varchar(30) collate utf8mb4_bin": BINARY_TEXT,
    "varchar(30) collate utf8mb4_general_ci": GENERAL_TEXT,
    "varchar(30) collate utf8mb4_unicode_ci": UNICODE_TEXT,
}


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_keys_sort_as_mariadb_sorts(mariadb: MariaDB, declaration: str) -> None:
    kind = DECLARATIONS[declaration]
    values = _examples(kind)
    encoding = encoding_of([kind], [False])
    with mariadb.connect(mariadb.fresh_database()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, c {declaration})")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(values)))
        for direction, reverse in (("ASC", False), ("DESC", True)):
            cursor.execute(f"SELECT id FROM t ORDER BY c {direction}, id {direction}")
            ids = [row[0] for row in cursor.fetchall()]
            assert ids == sorted(
                range(len(values)), key=lambda n: (encoding.encode((values[n],)), n), reverse=reverse
            )


def _examples(kind: SqlType) -> list[Any]:
    if kind in (ENUM, SET):
        return [None, *(MEMBERS if kind is ENUM else ("", "x", "y", "x,y", "z", "x,z", "y,z", "x,y,z"))]
    if kind is VARBINARY:
        return [None, b"", b"a", b"a\0", b"a\0\0", b"a\0b", b"a\xff", b"b", b"\0", b"\xff\xff"]
    if kind in (BINARY_TEXT, GENERAL_TEXT, UNICODE_TEXT):
        return [None, "", "a", "A", "ä", "b", "aa", "é", "😀", "\uffee", "日本", "z", "a ", "A b", "ß"]
    edges: list[Any] = [0, 1, 7, 2**31, 2**53, 2**63 - 1]
    if kind is BIGINT_UNSIGNED:
        return [None, *edges, 2**64 - 1]
    edges += [-1, -7, -(2**31), -(2**53)]
    if kind is BIGINT:
        return [None, *edges, -(2**63)]
    if kind is DOUBLE:
        return [None, *map(float, edges), 0.5, -0.5, 1e300, -1e300, 5e-300, -5e-300]
    return [None, *map(Decimal, edges), Decimal("0." + "0" * 29 + "1"), Decimal("-0.5"), Decimal("9" * 35)]
