"""Keys that order and group values."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from dataflow.values import temporal
from dataflow.values.comparison import comparable, group_key, sort_key
from dataflow.values.types import BIGINT, DATETIME, DOUBLE, INT, Kind, SqlType, Value, decimal, text
from tests.mariadb import MariaDB
from tests.unit.dataflow.differential import connect
from tests.unit.dataflow.random_expressions import COLUMNS, ROWS

ENUM = SqlType(Kind.ENUM, members=("low", "mid", "high"))


@pytest.mark.parametrize("descending", [False, True])
def test_nulls_come_first_and_last_when_descending(descending: bool) -> None:
    values: list[Value] = [3, None, 1, 2]
    ordered = sorted(values, key=sort_key(INT, descending))
    assert ordered == ([3, 2, 1, None] if descending else [None, 1, 2, 3])


def test_enums_are_ordered_by_position() -> None:
    assert sorted(["high", "low", "mid"], key=sort_key(ENUM)) == ["low", "mid", "high"]
    assert sorted(["high", "low", "mid"], key=sort_key(ENUM, descending=True)) == ["high", "mid", "low"]


def test_texts_are_ordered_by_collation() -> None:
    assert sorted(["b", "A", "a", "B"], key=sort_key(text())) == ["A", "a", "b", "B"]
    assert sorted(["b", "A", "a", "B"], key=sort_key(text(collation="utf8mb4_bin"), descending=True)) == ["b", "a", "B", "A"]


def test_values_that_are_equal_group_together() -> None:
    key = group_key(text())
    assert key is not None and key("É") == key("e") and key(None) is None
    assert group_key(DOUBLE) is None and hash(0.0) == hash(-0.0)
    assert group_key(decimal(10, 2)) is None and hash(Decimal("1.50")) == hash(Decimal("1.5"))


@pytest.mark.parametrize("position", range(len(COLUMNS)), ids=lambda position: COLUMNS[position][0])
@pytest.mark.parametrize("descending", [False, True])
def test_order_by_each_type_is_mariadbs(mariadb: MariaDB, position: int, descending: bool) -> None:
    name, _, type_ = COLUMNS[position]
    with connect(mariadb) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM t ORDER BY {name} {'DESC' if descending else 'ASC'}, id")
        expected = [int(row[0]) for row in cursor.fetchall()]
    key = sort_key(type_, descending)
    assert sorted(range(len(ROWS)), key=lambda number: key(ROWS[number][position])) == expected


def test_a_lookup_value_becomes_the_columns_key() -> None:
    assert comparable("12", text(), INT) == 12
    assert comparable("12.5", text(), INT) is None
    assert comparable(Decimal("7.0"), decimal(2, 1), BIGINT) == 7
    assert comparable("2020-01-02", text(), DATETIME) == temporal.pack(2020, 1, 2)
    key = group_key(text())
    assert key is not None and comparable("ABC", text(), text()) == key("abc")


def test_sorting_is_stable_for_random_texts() -> None:
    choose = random.Random(1)
    values = ["".join(choose.choices("aAbB", k=3)) for _ in range(50)]
    key = sort_key(text())
    assert [value.lower() for value in sorted(values, key=key)] == sorted(value.lower() for value in values)
