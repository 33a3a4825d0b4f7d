"""Projections go where others can do them, and nowhere else."""

from __future__ import annotations

from dataflow.expression import Call, Column, Literal
from dataflow.merging import merged
from dataflow.node import Aggregate, AggregateFunction, Base, Join, LeftJoin, Node
from dataflow.types import BIGINT, INT

STORIES = Base(1, (INT, INT), (0,))
VOTES = Base(2, (INT, INT), (0, 1))
COUNTS = Aggregate(VOTES, (1,), (AggregateFunction("count_star", (), BIGINT),))
PLUS = Call("+", (Column(1, INT), Literal(1, BIGINT)), BIGINT)


def project(node: Node, *columns: int) -> Join:
    return Join((node,), outputs=tuple(Column(column, node.types[column]) for column in columns))


def test_a_projection_that_changes_nothing_is_left_out() -> None:
    assert merged(project(COUNTS, 0, 1)) is COUNTS
    assert merged(project(COUNTS, 1, 0)) == project(COUNTS, 1, 0)


def test_projections_of_a_left_join_become_its_outputs() -> None:
    joined = LeftJoin(STORIES, project(COUNTS, 0, 1), ((0, 0),))
    outer = project(project(joined, 3, 0, 1), 1, 0)
    assert merged(outer) == LeftJoin(STORIES, COUNTS, ((0, 0),), outputs=(Column(0, INT), Column(3, BIGINT)))
    assert merged(outer).types == outer.types


def test_what_is_computed_once_is_not_computed_twice_and_what_may_fail_is_not_left_out() -> None:
    computed = Join((STORIES,), outputs=(Column(0, INT), PLUS))
    assert merged(project(computed, 1, 0)) == Join((STORIES,), outputs=(PLUS, Column(0, INT)))
    assert merged(project(computed, 1, 1)) == project(computed, 1, 1)
    assert merged(project(computed, 0)) == project(computed, 0)


def test_a_join_of_several_inputs_stays_as_it_is() -> None:
    pair = Join((STORIES, VOTES), ((0, 3),))
    assert merged(project(pair, 0)) == project(pair, 0)
