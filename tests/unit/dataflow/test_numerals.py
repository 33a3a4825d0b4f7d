"""Numbers as text."""

from __future__ import annotations

import random
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.values import documents, numerals
from tests.mariadb import MariaDB
from tests.unit.dataflow.differential import ENCODERS


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, "0.1"), (100.0, "100"), (1e14, "100000000000000"), (1e15, "1e15"), (1e22, "1e22"), (1.5e-16, "1.5e-16"),
        (1e-15, "0.000000000000001"), (-2.5, "-2.5"), (1234567890123456.8, "1234567890123456.8"), (0.0, "0"),
    ],
)  # fmt: skip
def test_doubles_are_written_like_mysql_does(value: float, expected: str) -> None:
    assert numerals.format_double(value) == expected


def test_random_doubles_and_floats_are_written_like_mariadb_does(mariadb: MariaDB) -> None:
    choose = random.Random(5)
    values = [choose.uniform(-1, 1) * 10 ** choose.randint(-20, 20) for _ in range(800)]
    values += [value for value in (struct.unpack("d", choose.randbytes(8))[0] for _ in range(200)) if 1e-30 < abs(value) < 1e30]
    with mariadb.connect(mariadb.fresh_database(), conv=ENCODERS) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (i INT PRIMARY KEY, d DOUBLE, f FLOAT)")
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", [(i, repr(v), repr(v)) for i, v in enumerate(values)])
        cursor.execute("SELECT d, f FROM t ORDER BY i")
        rows = cursor.fetchall()
    assert [row[0] for row in rows] == [numerals.format_double(value) for value in values]
    assert [row[1] for row in rows] == [numerals.format_float(numerals.single(value)) for value in values]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_doubles_read_back(value: float) -> None:
    assert numerals.read_real(numerals.format_double(value)) == value


@pytest.mark.parametrize(("text", "expected"), [("12abc", 12), ("1e2x", 100), (" -3.5", -3.5), ("abc", 0), (".5", 0.5), ("1e999", numerals.REAL_MAX)])
def test_text_is_worth_its_numeric_prefix(text: str, expected: float) -> None:
    assert numerals.read_real(text) == expected


def test_integers_of_text_stop_at_the_point() -> None:
    assert numerals.read_integer("12.9") == 12 and numerals.read_integer("-7x") == -7


def test_settling_rounds_half_away_and_has_no_negative_zero() -> None:
    assert numerals.settle(Decimal("2.345"), numerals.quantum(2)) == Decimal("2.35")
    assert str(numerals.settle(Decimal("-0.001"), numerals.quantum(2))) == "0.00"


def test_json_is_normalised() -> None:
    assert documents.normalise('{"bb": 1, "a":[1.0,  2e3, "x\\u00e9"], "bb":null}') == '{"a": [1.0, 2000.0, "xé"], "bb": null}'
    assert documents.normalise("18446744073709551616") == "1.8446744073709552e19"


@pytest.mark.parametrize("text", ["", "{", "NaN", "{a: 1}", "[1,]", "'x'"])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(documents.NotJson):
        documents.loads(text)


def test_json_compares_by_type_first() -> None:
    ordered = ["null", "-1", "2", "2.5", '"a"', '"b"', "{}", "[1]", "[2]", "false", "true"]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled, key=documents.order_key) == ordered
