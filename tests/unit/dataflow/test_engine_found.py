"""Histories that once went wrong, as the property tests found them."""

from __future__ import annotations

from dataflow.expressions.expression import Column, Literal
from dataflow.functions import call
from dataflow.plan.node import Aggregate, AggregateFunction, Join, LeftJoin, SemiJoin
from dataflow.state.arrangement import Hit
from dataflow.values.types import BIGINT, INT
from tests.property.dataflow_plans import BASES, AddView, Read, Write
from tests.property.test_dataflow import Run, run
from tests.property.test_dataflow_background import ReadWithin
from tests.property.test_dataflow_background import run as run_background

A = BASES[1]
COUNT = AggregateFunction("count_star", (), BIGINT)


def test_self_join_filled_within_a_step_sees_the_state_before_it() -> None:
    condition = call("=", Column(0, INT), Column(0, INT))
    node = SemiJoin(A, A, ((0, 0),), condition)
    run([Write((), ()), AddView(node, ()), Write(((1, (0, None, None)),), ())])


def test_two_key_columns_that_copy_one_column_must_both_match() -> None:
    outputs = (Column(0, INT), Column(0, INT), call("+", Column(0, INT), Literal(1, INT)))
    node = Join((A, A), ((0, 3),), None, outputs)
    run([AddView(node, (0, 1)), Write(((1, (0, None, None)),), ()), Read(0, (0, None))])


def test_a_full_aggregate_answers_a_key_it_has_not() -> None:
    state = Run()
    view = state.engine.add_view(Aggregate(Aggregate(A, (), (COUNT,)), (0,), (COUNT,)), (0,))
    assert state.engine.upquery(view, [(7,)]) == [Hit(())]


def test_one_left_column_equal_to_two_right_columns_counts_its_own_matches() -> None:
    b = BASES[2]
    node = LeftJoin(A, b, ((2, 1), (2, 0)), None, (Column(0, INT), Column(4, INT)))
    run(
        [
            AddView(node, ()),
            Write(((1, (1, None, 0)), (2, (2, 0, "x"))), ()),
            Write(((2, (2, 2, None)), (2, (0, 0, "Z")), (1, (2, 3, 0))), ()),
        ]
    )


def test_keys_filled_together_whose_one_part_is_looked_up_as_two() -> None:
    node = LeftJoin(A, A, ((0, 0), (0, 1)))
    run_background(
        [
            Write(((1, (1, 1, 2)), (1, (2, 3, 3))), ()),
            AddView(node, (0,)),
            ReadWithin(0, ((1,), (2,), (3,)), 1000),
            Write(((1, (2, 2, 0)),), ()),
        ]
    )
