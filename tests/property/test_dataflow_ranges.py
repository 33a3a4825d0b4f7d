"""Range reads of ordered arrangements against sorting and filtering all rows."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import Hit
from dataflow.values.ordering import Bound
from dataflow.values.types import Row
from tests.property.dataflow_plans import BASES, MemorySource

VALUES = st.sampled_from([None, 0, 1, 2, 3, 4])
BOUNDS = st.none() | st.tuples(st.tuples(VALUES), st.booleans())


def rank(row: Row) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, value or 0) for value in (row[2], *row))


WRITES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 1), VALUES, st.booleans()), max_size=40)
MANY = st.builds(
    lambda seed, count: [
        (random.randrange(400), random.randrange(2), random.choice([None, 0, 1, 2, 3, 4]), random.random() < 0.3)
        for random in [Random(seed)]
        for _ in range(count)
    ],
    st.integers(0, 1 << 30),
    st.integers(200, 1500),
)


def is_above(value: tuple[bool, object], bound: Bound) -> bool:
    """Whether a value is behind the bound."""
    [limit] = bound[0]
    edge = (limit is not None, limit or 0)
    return value > edge if bound[1] else value >= edge


@given(WRITES | MANY, BOUNDS, BOUNDS, st.none() | st.integers(0, 9), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_range_equals_filtering_and_sorting(
    writes: list[tuple[int, int, int | None, bool]],
    low: Bound | None,
    high: Bound | None,
    limit: int | None,
    descending: bool,
) -> None:
    source = MemorySource()
    engine = Engine(source)
    view = engine.add_view(BASES[1], (1,), order=(2,))
    other = engine.add_view(BASES[1], (1,), order=(0, 2))
    engine.upquery(view, [(0,)])
    kept: dict[int, Row] = {}
    for epoch, (identity, group, value, removes) in enumerate(writes, 1):
        delta = [(kept.pop(identity), -1)] if identity in kept else []
        if not removes:
            kept[identity] = (identity, group, value)
            delta.append((kept[identity], 1))
        for row, weight in delta:
            source.tables[1][row] += weight
        source.tables[1] = +source.tables[1]
        engine.apply(epoch, {1: delta})
    expected = [
        row
        for row in sorted((row for row in kept.values() if row[1] == 0), key=rank, reverse=descending)
        if (low is None or is_above(rank(row)[0], low)) and (high is None or not is_above(rank(row)[0], high))
    ]
    assert engine.range(view, (0,), low, high, limit, descending) == Hit(tuple(expected[:limit]))
    engine.remove_view(view)
    whole = sorted((row for row in kept.values() if row[1] == 0), reverse=descending)
    assert engine.range(other, (0,), limit=limit, descending=descending) == Hit(tuple(whole[:limit]))
    engine.validate()
