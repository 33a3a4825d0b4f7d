"""Aggregates over frames that move are those of the rows in each frame."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from dataflow.aggregates.running import RunningAggregate
from dataflow.expressions.expression import Column
from dataflow.plan.node import AggregateFunction
from dataflow.values.types import BIGINT, DOUBLE, INT, decimal


@pytest.mark.parametrize("name", ["count", "count_star", "sum", "avg", "min", "max", "bit_and", "bit_or", "bit_xor", "var_pop", "stddev_samp"])
def test_rows_that_leave_a_frame_leave_no_trace(name: str) -> None:
    kind = {"sum": decimal(32, 0), "avg": decimal(14, 4), "min": INT, "max": INT}.get(name, DOUBLE if "_" in name else BIGINT)
    arguments = () if name == "count_star" else (Column(0, INT),)
    aggregate = RunningAggregate(AggregateFunction(name, arguments, kind))
    chance = random.Random(name)
    rows = [(None if chance.random() < 0.2 else chance.randint(-9, 9),) for _ in range(60)]
    state, first, last = aggregate.fresh(), 0, 0
    for _ in range(200):
        start = chance.randint(first, len(rows))
        end = chance.randint(max(last, start), len(rows))
        if start <= last:
            aggregate.absorb(state, rows[first:start], -1)
            aggregate.absorb(state, rows[last:end], 1)
            first, last = start, end
        whole = aggregate.fresh()
        aggregate.absorb(whole, rows[first:last], 1)
        assert aggregate.result(state) == aggregate.result(whole)
    assert aggregate.result(aggregate.fresh()) in (None, 0, (1 << 64) - 1)


def test_a_sum_is_exact() -> None:
    aggregate = RunningAggregate(AggregateFunction("sum", (Column(0, DOUBLE),), DOUBLE))
    state = aggregate.fresh()
    aggregate.absorb(state, [(1e300,), (1.0,)], 1)
    aggregate.absorb(state, [(1e300,)], -1)
    assert aggregate.result(state) == 1.0
    exact = RunningAggregate(AggregateFunction("avg", (Column(0, INT),), decimal(14, 4)))
    state = exact.fresh()
    exact.absorb(state, [(1,), (2,), (None,)], 1)
    assert exact.result(state) == Decimal("1.5000")
