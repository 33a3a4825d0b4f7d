"""How queries are answered: a file of SQL and decisions for each pass. `pytest --rewrite` writes the files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.execution.answering.decision import PASSES
from backend.execution.answering.query import compile_query
from backend.execution.explaining.explanation import explain, tree_text
from controller.sql.plan import Query
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from tests.unit.controller.sql.world import World

FILES = Path(__file__).parent / "decisions"
WORLD = World(
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, team INT, UNIQUE KEY by_name (name))",
    "CREATE TABLE stories (id INT PRIMARY KEY, author INT, title VARCHAR(20), points INT, KEY by_author (author, points))",
    "CREATE TABLE votes (story INT, user INT, vote INT, PRIMARY KEY (story, user))",
)


def decided(sql: str) -> str:
    """The pass that decides, and what EXPLAIN says of it with one shard."""
    plan, values = PlanCache().plan_text(sql, WORLD.catalog, "db", DEFAULT_SETTINGS)
    assert isinstance(plan.statement, Query)
    compiled = compile_query(plan.statement)
    given = (*values, *(0 for _ in plan.facts))
    tree = tree_text(explain(plan, given, compiled).step)
    return f"{sql}\n=> {compiled.decision.way}\n" + "".join(f"   {line}\n" for line in tree.splitlines())


@pytest.mark.parametrize("name", [each.__name__ for each in PASSES])
def test_queries_are_answered_as_the_file_says(name: str, request: pytest.FixtureRequest) -> None:
    file = FILES / f"{name}.txt"
    text = file.read_text()
    statements = [block.splitlines()[0] for block in text.split("\n\n") if block.strip()]
    now = "\n".join(map(decided, statements))
    if request.config.getoption("--rewrite"):
        file.write_text(now)
    assert file.read_text() == now
