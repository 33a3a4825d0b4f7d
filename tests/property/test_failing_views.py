"""An operator fails in the middle of a change, or a read for it does: the views made from it go, and all others stay as right as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.expressions.source import Function
from dataflow.plan.node import Columns
from dataflow.runtime.engine import CannotFollow
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator, below
from dataflow.state.delta import Delta
from dataflow.values.types import Row
from tests.property.dataflow_plans import Action, OpenHandle, Write, histories
from tests.property.test_dataflow import QUIET, Run


class Failure(Exception):
    """What fails on purpose."""


class FailingRun(Run):
    """`choose` says what fails in the next write: an operator by its place, or, if negative, a read of tables by its turn."""

    def __init__(self, choose: Callable[[], int]) -> None:
        super().__init__()
        self.choose = choose
        self.failed = 0

    def write(self, write: Write) -> None:
        graph, chosen = self.engine.graph, self.choose()
        operators = [each for each in graph.operators.values() if each.inputs]
        bad = operators[chosen % len(operators)] if operators and chosen >= 0 else None
        update, lookup, turn = Graph.update, self.source.lookup, chosen

        def failing(self: Graph, operator: Operator, number: int) -> Function:
            function = update(self, operator, number)

            def half(delta: Delta) -> None:
                function(delta[: len(delta) // 2])
                raise Failure

            return half if operator is bad else function

        def reading(table: int, columns: Columns, keys: Sequence[object]) -> list[Iterable[Row]]:
            nonlocal turn
            turn += 1
            if not turn:
                raise Failure
            return lookup(table, columns, keys)

        graph._steps.clear()
        try:
            with patch.object(Graph, "update", failing), patch.object(self.source, "lookup", reading):
                super().write(write)
        except CannotFollow as raised:
            assert raised.views and all(isinstance(error, Failure) for error in raised.views.values())
            self.failed += 1
            for view in raised.views:
                assert bad is None or bad in below(view.operator).values(), "nobody else goes"
                self.views.remove(view)
                self.engine.remove_view(view)
        graph._steps.clear()


FAILED: list[int] = []


@given(histories(), st.lists(st.integers(-4, 6), min_size=1))
@settings(QUIET)
def check(history: list[Action], chosen: list[int]) -> None:
    turns = iter(chosen * 100)
    state = FailingRun(lambda: next(turns))
    for action in history:
        if not isinstance(action, OpenHandle):
            state.do(action)
    FAILED.append(state.failed)


def test_what_fails_takes_the_views_made_from_it_and_no_others() -> None:
    check()
    assert sum(FAILED) > len(FAILED) / 20, "too few fail"
