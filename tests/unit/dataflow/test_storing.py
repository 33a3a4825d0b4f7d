"""Storing: notices, strictness, and the quick tests that skip all of it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import Condition, InvalidStatement
from dataflow.values import temporal
from dataflow.values.modes import Modes
from dataflow.values.storing import NOTE, WARNING, Report, column_fitness, column_storer, row_storer, store
from dataflow.values.types import BIGINT, DATE, DATETIME, INT, JSON, NULL, Kind, SqlType, Value, decimal, text
from tests.unit.dataflow.storing_samples import COLUMNS, VALUES

TIMESTAMP = SqlType(Kind.TIMESTAMP)
RELAXED = Modes(strict=False)


def refusal(column: SqlType, value: Value, modes: Modes = Modes()) -> tuple[Condition, str]:  # noqa: B008
    with pytest.raises(InvalidStatement) as raised:
        store(column, value, NULL, "c", Report(row_number=3), modes)
    return raised.value.condition, str(raised.value)


def test_a_refusal_names_the_column_and_the_row() -> None:
    assert refusal(INT, "abc") == (Condition.INCORRECT_VALUE, "Incorrect integer value: 'abc' for column 'c' at row 3")
    assert refusal(INT, 1 << 40) == (Condition.OUT_OF_RANGE, "Out of range value for column 'c' at row 3")
    assert refusal(text(2), "abc") == (Condition.DATA_TOO_LONG, "Data too long for column 'c' at row 3")
    assert refusal(DATE, "2020-02-30")[1] == "Incorrect date value: '2020-02-30' for column 'c' at row 3"


def test_without_strictness_values_are_made_to_fit_and_noted() -> None:
    report = Report(row_number=2)
    assert store(INT, 1 << 40, BIGINT, "c", report, RELAXED) == 2147483647
    assert store(text(2), "abc", text(), "c", report, Modes().ignoring()) == "ab"
    assert [(notice.level, notice.condition) for notice in report.notices] == [
        (WARNING, Condition.OUT_OF_RANGE), (WARNING, Condition.DATA_TRUNCATED),
    ]  # fmt: skip
    assert report.notices[0].message == "Out of range value for column 'c' at row 2"


def test_lost_digits_and_spaces_are_notes_even_when_strict() -> None:
    report = Report()
    assert store(decimal(5, 2), Decimal("1.239"), decimal(5, 3), "c", report) == Decimal("1.24")
    assert store(text(2), "ab  ", text(), "c", report) == "ab"
    assert [notice.level for notice in report.notices] == [NOTE, NOTE]


def test_json_is_normalised_and_never_stored_invalid() -> None:
    assert store(JSON, '{"b":1, "a":[1,2]}', text(), "c", Report()) == '{"a": [1, 2], "b": 1}'
    assert store(JSON, 5, BIGINT, "c", Report()) == "5"
    assert refusal(JSON, "{bad", RELAXED)[0] is Condition.INVALID_JSON


def test_timestamps_are_stored_in_utc() -> None:
    berlin = Modes(time_zone="Europe/Berlin")
    stored = store(TIMESTAMP, "2020-07-01 12:00:00", text(), "c", Report(), berlin)
    assert stored == temporal.pack(2020, 7, 1, 10)
    assert store(DATETIME, stored, TIMESTAMP, "c", Report(), berlin) == temporal.pack(2020, 7, 1, 12)
    assert store(TIMESTAMP, stored, TIMESTAMP, "c", Report(), berlin) == stored


def test_zero_dates_depend_on_the_mode() -> None:
    assert refusal(DATE, "0000-00-00")[0] is Condition.TRUNCATED_WRONG_VALUE
    assert store(DATE, "0000-00-00", text(), "c", Report(), Modes.parse("STRICT_TRANS_TABLES")) == 0


def test_null_passes_whatever_the_column() -> None:
    for _, column in COLUMNS:
        assert store(column, None, NULL, "c", Report()) is None


@pytest.mark.parametrize("unknown", [False, True], ids=["typed", "untyped"])
@pytest.mark.parametrize("column", [column for _, column in COLUMNS], ids=[sql for sql, _ in COLUMNS])
def test_rows_are_stored_as_single_values_are(column: SqlType, unknown: bool) -> None:
    for value, source in VALUES:
        if unknown and source.kind in (Kind.DATE, Kind.DATETIME, Kind.TIME):
            continue
        given_type = NULL if unknown else source
        one, two = Report(), Report()
        slow = column_storer(column, given_type, "c", RELAXED)(value, one)
        fast = row_storer([(column, "c")], [given_type], RELAXED)((value,), two)
        assert (fast, two.notices) == ((slow,), one.notices), value


@given(st.tuples(st.integers(), st.text(max_size=30)))
def test_what_was_stored_is_stored_unchanged(values: tuple[int, str]) -> None:
    columns = [(INT, "a"), (text(20), "b")]
    keep = row_storer(columns, [NULL, NULL], RELAXED)
    stored = keep(values, Report())
    report = Report()
    assert keep(stored, report) == stored and report.notices == []


def test_dates_that_a_calendar_has_are_stored_as_they_are() -> None:
    dates = [(2020, 2, 29), (2019, 12, 31), (1900, 2, 28), (2000, 2, 29), (9999, 12, 31), (1, 1, 30)]
    fits = column_fitness(DATE, DATE, nullable=False)
    assert fits is not None and fits([temporal.pack(*each) for each in dates])
    for each in ((2019, 2, 29), (1900, 2, 29), (2020, 4, 31), (2020, 0, 1), (2020, 1, 0), (0, 2, 29), (0, 0, 0)):
        assert not fits([temporal.pack(*each)]), each
    fits = column_fitness(TIMESTAMP, TIMESTAMP, nullable=False)
    assert fits is not None and fits([temporal.pack(1970, 1, 1, 0, 0, 1), temporal.pack(2038, 1, 19, 3, 14, 7)])
    assert not fits([temporal.pack(1970, 1, 1)]) and not fits([temporal.pack(2038, 1, 19, 3, 14, 8)])
