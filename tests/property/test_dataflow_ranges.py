"""Range reads of ordered arrangements against sorting and filtering all rows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.arrangement import Hit
from dataflow.engine import Bound, Engine
from dataflow.types import Row
from tests.property.dataflow_plans import BASES, MemorySource

VALUES = st.sampled_from([None, 0, 1, 2, 3, 4])
BOUNDS = st.none() | st.builds(Bound, st.tuples(VALUES), st.booleans())


def rank(row: Row) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, value or 0) for value in (row[2], *row))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1), VALUES, st.booleans()), max_size=40), BOUNDS, BOUNDS)
@settings(max_examples=200)
def test_a_range_equals_filtering_and_sorting(writes: list[tuple[int, int, int | None, bool]], low: Bound | None, high: Bound | None) -> None:
    source = MemorySource()
    engine = Engine(source)
    view = engine.add_view(BASES[1], (1,))
    engine.keep_ordered(view, (2,))
    engine.upquery(view, [(0,)])
    for epoch, (identity, group, value, removes) in enumerate(writes, 1):
        delta = [(row, -1) for row in source.tables[1] if row[0] == identity]
        if not removes:
            delta.append(((identity, group, value), 1))
        for row, weight in delta:
            source.tables[1][row] += weight
        source.tables[1] = +source.tables[1]
        engine.apply(epoch, {1: delta})
    expected = []
    for row in sorted((row for row in source.tables[1] if row[1] == 0), key=rank):
        value = rank(row)[0]
        if low is not None and (value < rank((0, 0, low.values[0]))[0] or (value == rank((0, 0, low.values[0]))[0] and not low.inclusive)):
            continue
        if high is not None and (value > rank((0, 0, high.values[0]))[0] or (value == rank((0, 0, high.values[0]))[0] and not high.inclusive)):
            continue
        expected.append(row)
    assert engine.range(view, (0,), low, high) == Hit(tuple(expected))
