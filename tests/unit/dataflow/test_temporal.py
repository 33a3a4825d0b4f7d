"""Dates and times as integers, and how they are read."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.values import temporal
from dataflow.values.modes import Modes
from dataflow.values.temporal import Flaw

moments = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59))


@given(moments)
def test_packing_is_reversible(moment: datetime) -> None:
    packed = temporal.from_datetime(moment)
    assert temporal.to_datetime(packed) == moment
    assert temporal.read_datetime(temporal.format_datetime(packed, 6)) == (packed, Flaw.NONE)


@given(moments, moments)
def test_packed_dates_compare_like_dates(one: datetime, two: datetime) -> None:
    assert (temporal.from_datetime(one) < temporal.from_datetime(two)) == (one < two)


@given(moments, st.integers(0, 6))
def test_rounding_keeps_within_half_a_unit(moment: datetime, digits: int) -> None:
    packed = temporal.from_datetime(moment)
    rounded = temporal.round_datetime(packed, digits)
    if rounded:
        difference = abs(temporal.to_microseconds(rounded) - temporal.to_microseconds(packed))
        assert difference * 2 <= 10 ** (6 - digits)
        assert temporal.unpack(rounded)[6] % 10 ** (6 - digits) == 0


def test_a_date_equals_its_midnight() -> None:
    assert temporal.from_datetime(date(2020, 1, 2)) == temporal.from_datetime(datetime(2020, 1, 2))


def test_zero_dates_are_values() -> None:
    assert temporal.read_datetime("0000-00-00") == (0, Flaw.NONE)
    assert temporal.format_date(temporal.pack(2020, 0, 0)) == "2020-00-00"
    assert temporal.read_datetime("2020-00-00") == (temporal.pack(2020, 0, 0), Flaw.NONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-1-2", "2020-01-02 00:00:00.000000"),
        ("20200102", "2020-01-02 00:00:00.000000"),
        ("20200102030405", "2020-01-02 03:04:05.000000"),
        ("2020-01-02T03:04:05.678", "2020-01-02 03:04:05.678000"),
        ("20-1-2", "2020-01-02 00:00:00.000000"),
        ("70-1-2", "1970-01-02 00:00:00.000000"),
        ("2020/01/02 3:4", "2020-01-02 03:04:00.000000"),
        ("2020-01-02 03:04:05.9999999", "2020-01-02 03:04:06.000000"),
        ("2020-01-02 03:04:05+02:00", "2020-01-02 01:04:05.000000"),
        ("  2020-01-02", "2020-01-02 00:00:00.000000"),
    ],
)
def test_liberal_dates(text: str, expected: str) -> None:
    value, flaw = temporal.read_datetime(text)
    assert value is not None and flaw is Flaw.NONE
    assert temporal.format_datetime(value, 6) == expected


@pytest.mark.parametrize("text", ["abc", "", "2020-02-30", "2020-13-01", "2020-01-02 25:00:00", "2020"])
def test_what_is_no_date(text: str) -> None:
    assert temporal.read_datetime(text)[0] is None


def test_garbage_after_a_date_is_a_flaw_of_a_value() -> None:
    assert temporal.read_datetime("2020-01-02x") == (temporal.pack(2020, 1, 2), Flaw.TRUNCATED)


def test_sql_mode_decides_about_zeros_and_invalid_days() -> None:
    assert temporal.read_datetime("0000-00-00", Modes()) == (None, Flaw.ZERO_DATE)
    assert temporal.read_datetime("2020-00-01", Modes()) == (None, Flaw.ZERO_IN_DATE)
    assert temporal.read_datetime("2020-02-31", Modes(allow_invalid_dates=True)) == (temporal.pack(2020, 2, 31), Flaw.NONE)


def test_numbers_are_dates_too() -> None:
    assert temporal.read_number(20200102)[0] == temporal.pack(2020, 1, 2)
    assert temporal.read_number(200102)[0] == temporal.pack(2020, 1, 2)
    assert temporal.read_number(5)[0] is None
    assert temporal.read_decimal(Decimal("20200102030405.5"))[0] == temporal.pack(2020, 1, 2, 3, 4, 5, 500000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12:34", "12:34:00"), ("3 12:00", "84:00:00"), ("123456", "12:34:56"), ("-1:2:3.5", "-01:02:04"), ("10", "00:00:10"),
        ("2020-01-02 03:04:05", "03:04:05"), ("900:00:00", "838:59:59"),
    ],
)  # fmt: skip
def test_liberal_times(text: str, expected: str) -> None:
    value = temporal.read_time(text)[0]
    assert value is not None
    assert temporal.format_time(temporal.round_time(value, 0)) == expected


def test_times_are_signed_microseconds() -> None:
    assert temporal.from_timedelta(timedelta(hours=-1)) == temporal.read_time("-01:00:00")[0] == -temporal.HOUR
    assert temporal.time_number(-temporal.HOUR) == -10000


@given(st.integers(1, 3_652_059))
def test_day_numbers_are_pythons_ordinals_shifted(ordinal: int) -> None:
    day = date.fromordinal(ordinal)
    assert temporal.to_days(day.year, day.month, day.day) == ordinal + 365
    assert temporal.from_days(ordinal + 365) == temporal.from_datetime(day)


def test_zones_move_times() -> None:
    noon = temporal.pack(2020, 7, 1, 12)
    assert temporal.to_utc(noon, "+02:00") == temporal.pack(2020, 7, 1, 10)
    assert temporal.from_utc(noon, "Europe/Berlin") == temporal.pack(2020, 7, 1, 14)
    assert temporal.zone("nowhere/land") is None
