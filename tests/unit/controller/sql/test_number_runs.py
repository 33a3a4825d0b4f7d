"""Runs of numbers are read as their literals would be one by one, or not at all."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.sql.text.number_runs import RUN_MIN, is_plain, number_list, number_rows

HEAD, TAIL = b"SELECT a FROM t WHERE id IN ", b" AND b"
MANY = list(range(7, 7 + RUN_MIN))


def joined(numbers: list[int], between: str = ", ") -> bytes:
    return between.join(map(str, numbers)).encode()


@pytest.mark.parametrize("between", [", ", ","])
def test_a_list_is_read_with_what_is_around_it(between: str) -> None:
    numbers = [0, 9223372036854775806, *MANY, 3, 3]
    found = number_list(HEAD + b"(" + joined(numbers, between) + b")" + TAIL)
    assert found is not None
    assert (found[0], found[1].tolist(), found[2]) == (HEAD, numbers, TAIL)


FAULTS = ["1, ,2", "1,2 3", "1,2 3,4 5", "1 2", "1,,2", "-1", "+1", "1.5", "1e3", "0x1F", "NULL", "'1'", "(1)", "a", "?", "", " 1", "1 ", "/**/1", "\n1", "1\t"]  # fmt: skip
TOO_LARGE = ["9223372036854775807", "9223372036854775808", "18446744073709551615", "1" * 30]


@pytest.mark.parametrize("fault", [*FAULTS, *TOO_LARGE])
@pytest.mark.parametrize("place", [0, 5, RUN_MIN])
@pytest.mark.parametrize("between", [", ", ","])
def test_anything_else_is_no_list(fault: str, place: int, between: str) -> None:
    pieces = [str(each) for each in MANY]
    pieces.insert(place, fault)
    assert number_list(HEAD + b"(" + between.join(pieces).encode() + b")" + TAIL) is None


def test_a_short_list_and_one_that_does_not_end_are_none() -> None:
    assert number_list(HEAD + b"(1)") is None
    assert number_list(HEAD) is None and number_list(b"") is None


@pytest.mark.parametrize("row", ["(%d, %d)", "(%d,%d)"])
@pytest.mark.parametrize("between", [", ", ",", ",\n"])
def test_rows_are_read_one_after_the_other(row: str, between: str) -> None:
    pairs = [(each, 10**each) for each in range(18)]
    found = number_rows(between.join(row % pair for pair in pairs).encode())
    assert found is not None and found[1] == 2
    assert found[0].tolist() == [number for pair in pairs for number in pair]


ROW_FAULTS = ["(1)", "(1, 2, 3)", "(1, 2", "1, 2)", "(1, 2)3", "3(1, 2)", "(, 1)", "(1, )", "()", "((1, 2))", "(1, -2)", "(1,2)", "(1 2, 3)", "(1, 2) ", "(1, NULL)", "(1, 2);", "", "(1, 9223372036854775807)"]  # fmt: skip


@pytest.mark.parametrize("fault", ROW_FAULTS)
@pytest.mark.parametrize("place", [0, 5, RUN_MIN])
def test_rows_of_another_shape_are_none(fault: str, place: int) -> None:
    rows = [f"({each}, {each})" for each in MANY]
    rows.insert(place, fault)
    assert number_rows(", ".join(rows).encode()) is None


LIST, ROWS = re.compile(r"\s*\d+\s*(,\s*\d+\s*)*"), re.compile(r"\((\d+, \d+)\)(,\s*\(\d+, \d+\))*")


@given(st.text("01,() ", max_size=12), st.integers(0, 100))
def test_what_is_read_is_what_is_written(fault: str, place: int) -> None:
    text = ", ".join(map(str, MANY))
    text = text[:place] + fault + text[place:]
    listed = number_list(f"({text})".encode())
    if listed is not None:
        body = text[len(listed[0]) :].partition(")")[0]
        assert LIST.fullmatch(body) and listed[1].tolist() == [int(each) for each in body.split(",")]
    text = ", ".join(f"({each}, {each})" for each in MANY)
    text = text[:place] + fault + text[place:]
    rows = number_rows(text.encode())
    if rows is not None:
        assert ROWS.fullmatch(text) and rows[0].tolist() == [int(each) for each in re.findall(r"\d+", text)]


@pytest.mark.parametrize("text", ["'", '"', "/* */", "-- ", "#", "a`b", "\\", "ü"])
def test_strings_comments_and_open_names_are_not_plain(text: str) -> None:
    assert not is_plain(f"SELECT {text} FROM t".encode())
    assert is_plain(b"SELECT `a(`, b FROM `t`.`u` WHERE id IN ")
