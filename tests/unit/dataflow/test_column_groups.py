"""Groups by column hold no more texts than they may: rows, whose memory is counted, answer then."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dataflow.columns import grouping
from dataflow.columns.expressions import Columns
from dataflow.columns.grouping import Grouped
from dataflow.columns.vector import GaveUp, vector_of
from dataflow.plan.node import Aggregate, AggregateFunction, Base
from dataflow.values.types import Kind, SqlType

TEXT, NUMBER = SqlType(Kind.VARCHAR, length=100), SqlType(Kind.BIGINT)


def grouped(*group: int) -> Grouped:
    count = AggregateFunction("count_star", (), NUMBER)
    found = Grouped.of(Aggregate(Base(1, (TEXT, NUMBER), (1,)), group, (count,)))
    assert found is not None
    return found


def rows(first: int, count: int) -> Columns:
    numbers = range(first, first + count)
    return Columns(count, {0: vector_of([f"{each:050}" for each in numbers], TEXT), 1: vector_of(list(numbers), NUMBER)})


def test_different_texts_are_held_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "TEXT_BYTES_MAX", 5_000)
    groups = grouped(0)
    groups.add(rows(0, 60))
    groups.add(rows(0, 60))
    batch = groups.batch()
    assert batch is not None and batch.num_rows == 60
    with pytest.raises(GaveUp):
        groups.add(rows(60, 60))


def test_a_text_of_many_groups_is_not_repeated_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "TEXT_BYTES_MAX", 5_000)
    groups = grouped(0, 1)
    one = Columns(120, {0: pa.array(["x" * 50] * 120), 1: rows(0, 120).vectors[1]})
    groups.add(one)
    with pytest.raises(GaveUp):
        groups.batch()
