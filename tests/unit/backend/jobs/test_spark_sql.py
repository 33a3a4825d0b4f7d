"""Nodes as Spark SQL: what is written, and what is refused as Spark would answer otherwise. What Spark makes of it is in tests/wire/test_jobs.py."""

from __future__ import annotations

import pytest

from backend.jobs.spark_sql import SparkQuery, spark_query
from backend.jobs.spark_types import NoForm
from controller.sql.plan import Query
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.expressions.rewriting import bound_node
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Join
from tests.unit.controller.sql.world import World

WORLD = World(
    "CREATE TABLE s (id INT PRIMARY KEY, title VARCHAR(20), price DECIMAL(8, 2), at DATE, big BIGINT UNSIGNED, ratio DOUBLE)",
    "CREATE TABLE v (id INT PRIMARY KEY, story INT, price DECIMAL(8, 2))",
)


def written(sql: str) -> SparkQuery:
    plan, values = PlanCache().plan_text(sql, WORLD.catalog, "db", DEFAULT_SETTINGS)
    assert isinstance(plan.statement, Query)
    return spark_query(bound_node(plan.statement.node, dict(enumerate(values))))


def test_a_join_with_groups_reads_the_columns_that_it_needs() -> None:
    found = written("SELECT s.id, COUNT(*), SUM(v.price) FROM s JOIN v ON v.story = s.id WHERE s.title LIKE 'a%' AND v.price > s.price GROUP BY s.id")
    assert {scan.base.name: (scan.columns, scan.filter is not None) for scan in found.scans} == {"db.s": ((0, 2), True), "db.v": ((1, 2), False)}
    assert "GROUP BY" in found.sql and "title" not in found.sql and "SUM(" in found.sql


def test_filters_of_one_table_go_to_its_scan_however_they_are_nested() -> None:
    plan, values = PlanCache().plan_text("SELECT id FROM s WHERE title LIKE 'a%' AND id / 2 > 3", WORLD.catalog, "db", DEFAULT_SETTINGS)
    assert isinstance(plan.statement, Query) and plan.statement.filter is not None
    node = Join((Join((plan.statement.node,), filter=plan.statement.filter),), filter=plan.statement.filter)
    found = spark_query(bound_node(node, dict(enumerate(values))))
    assert "WHERE" not in found.sql and len(found.scans) == 1 and len(conjuncts(found.scans[0].filter)) == 4


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT title, COUNT(*) FROM s GROUP BY title", "groups of type varchar"),
        ("SELECT id, SUM(ratio) FROM s GROUP BY id", "aggregate function sum of double"),
        ("SELECT id, MAX(title) FROM s GROUP BY id", "aggregate function max of varchar"),
        ("SELECT a.id, COUNT(*) FROM s a JOIN s b ON a.title = b.title GROUP BY a.id", "varchar compared with varchar"),
        ("SELECT a.id, COUNT(*) FROM s a JOIN s b ON a.ratio = b.ratio GROUP BY a.id", "double compared with double"),
        ("SELECT id, SUM(big + 1) FROM s GROUP BY id", "bigint + bigint"),
        ("SELECT at, GROUP_CONCAT(id) FROM s GROUP BY at", "function concat"),
        ("SELECT id, SUM(price / 3) FROM s GROUP BY id", "function /"),
    ],
)  # fmt: skip
def test_what_spark_would_answer_otherwise_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(NoForm) as refused:
        written(sql)
    assert reason in str(refused.value)
