"""Operators are described with the names that columns have in their tables."""

from __future__ import annotations

from dataflow.expressions.expression import Column, Literal
from dataflow.plan.node import (
    Aggregate,
    AggregateFunction,
    Base,
    Join,
    LeftJoin,
    Node,
    Order,
    SemiJoin,
    TopK,
    Union,
)
from dataflow.runtime.engine import Engine
from dataflow.runtime.explanation import column_name, explain
from dataflow.values.types import BIGINT, INT
from tests.property.dataflow_plans import MemorySource

STORIES = Base(1, (INT, INT), (0,), "stories", column_names=("id", "author"))
VOTES = Base(2, (INT, INT, INT), (0,), "votes", column_names=("id", "story", "points"))
COUNT = AggregateFunction("count_star", (), BIGINT)
SUM = AggregateFunction("sum", (Column(2, INT),), BIGINT)


def described(node: Node) -> str:
    view = Engine(MemorySource()).add_view(node, key=(0,))
    return explain(view)[-1].does


def test_an_operator_names_its_columns() -> None:
    assert described(Aggregate(VOTES, (1,), (COUNT, SUM))) == "COUNT(*), SUM(points) by story"
    assert described(Join((STORIES, VOTES), ((0, 3),))) == "join on id = story"
    assert described(LeftJoin(STORIES, VOTES, ((0, 1),))) == "left join on id = story"
    assert described(SemiJoin(STORIES, VOTES, ((1, 2),), negated=True)) == "anti join on author = points"
    assert described(TopK(VOTES, (1,), (Order(Column(2, INT)),), 3)) == "top 3 by story"
    assert described(TopK(VOTES, (1,), (Order(Column(2, INT)),), 3, 5)) == "rows 6 to 8 by story"
    assert described(Union((STORIES, STORIES))) == "union"


def test_a_column_is_known_by_the_table_that_it_comes_from() -> None:
    joined = Join((STORIES, Aggregate(VOTES, (1,), (SUM,))), ((0, 2),), None, (Column(1, INT), Column(3, BIGINT), Literal(1, INT)))
    assert [column_name(joined, each) for each in range(3)] == ["author", "SUM(points)", "column 3"]
    assert column_name(Base(3, (INT,), (0,)), 0) == "column 1"
