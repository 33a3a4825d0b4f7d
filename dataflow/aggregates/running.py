"""One aggregate function over a frame of rows that moves: rows come in at one end and go out at the other.

The same code as a group's (`dataflow.aggregates.accumulator`), which is exact under removal, so a row is looked at twice
however many frames it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dataflow.aggregates.accumulator import accumulator
from dataflow.expressions.source import FunctionSource, RowColumns
from dataflow.plan.node import AggregateFunction
from dataflow.state.ordered_bag import OrderedBag
from dataflow.values.types import Row, Value

State = list[Any]


class RunningAggregate:
    """`function` reads rows of nothing but its arguments. `absorb(state, rows, weight)` takes rows in, or out with -1."""

    def __init__(self, function: AggregateFunction) -> None:
        code = FunctionSource("absorb", "s, rows, w")
        made = accumulator(code, function)
        slots = [f"s[{place}]" for place in range(1, len(made.initial) + 1)]
        with code.block("for row in rows:"):
            depth = code.depth
            code.line("s[0] += w")
            made.absorb(code, slots, RowColumns(), "w")
            code.close(depth)
        self.absorb: Callable[[State, Sequence[Row], int], None] = code.build()
        code = FunctionSource("result", "s")
        code.line(f"return {made.result(code, slots)}")
        self.result: Callable[[State], Value] = code.build()
        code = FunctionSource("fresh", "")
        initial = ", ".join(("0", *made.initial)).replace("OrderedBag", code.constant(OrderedBag))
        code.line(f"return [{initial}]")
        self.fresh: Callable[[], State] = code.build()
