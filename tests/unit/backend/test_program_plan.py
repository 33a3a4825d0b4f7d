"""What transitions reuse: a file of queries that come one after the other, and of their plans. `pytest --rewrite` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backend.execution.answering.query import CompiledQuery, compile_query
from backend.execution.explaining.explanation import explain, tree_text, with_reuse
from backend.network.program_messages import AddView
from backend.views.program_plan import ProgramPlan, plan_text
from controller.sql.plan import Plan, Query
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.values.types import Value
from tests.unit.controller.sql.world import World

FILE = Path(__file__).parent / "transitions" / "reuse.txt"
WORLD = World(
    "CREATE TABLE stories (id INT PRIMARY KEY, author INT, title VARCHAR(20), points INT, KEY by_author (author))",
    "CREATE TABLE votes (id INT PRIMARY KEY, story INT, user INT, KEY by_story (story), KEY by_user (user))",
)


def compiled(sql: str) -> tuple[Plan, CompiledQuery, tuple[Value, ...]]:
    plan, values = PlanCache().plan_text(sql, WORLD.catalog, "db", DEFAULT_SETTINGS)
    assert isinstance(plan.statement, Query)
    return plan, compile_query(plan.statement), tuple(values)


def wanted(sql: str) -> AddView:
    plan, query, values = compiled(sql)
    view = explain(plan, values, query).view
    assert view is not None
    return view.request()


def planned(statements: list[str]) -> str:
    """The program's transitions: names of views are those of their places in the file."""
    program, text = ProgramPlan(), ""
    names: dict[str, str] = {}
    for number, sql in enumerate(statements, 1):
        view = wanted(sql)
        names.setdefault(view.view.hex()[:8], f"query {number}")
        text += f"{sql}\n" + "".join(f"   {line}\n" for line in plan_text(program.add(view)).splitlines()) + "\n"
    return re.sub("|".join(names), lambda found: names[found[0]], text)[:-1]


def test_transitions_reuse_what_the_file_says(request: pytest.FixtureRequest) -> None:
    text = FILE.read_text()
    now = planned([block.splitlines()[0] for block in text.split("\n\n") if block.strip()])
    if request.config.getoption("--rewrite"):
        FILE.write_text(now)
    assert FILE.read_text() == now


GROUPED = "SELECT story, COUNT(*) FROM votes WHERE story = 1 GROUP BY story"
JOINED = "SELECT s.title, c.n FROM stories s JOIN (SELECT story, COUNT(*) AS n FROM votes GROUP BY story) c ON c.story = s.id WHERE s.id = 1"


def test_a_plan_that_is_looked_at_or_removed_leaves_nothing_behind() -> None:
    program = ProgramPlan()
    views = [wanted(sql) for sql in (GROUPED, JOINED)]
    alone = program.look(views[1])
    assert not alone.is_there and not program.names
    program.add(views[0])
    shared = program.look(views[1])
    assert [step.shared_with for step in shared.steps if step.text.startswith("COUNT")] == [[views[0].view]]
    assert program.names == {views[0].view}
    program.add(views[1])
    assert program.look(views[1]).is_there
    program.remove(views[0].view)
    program.remove(views[0].view)
    assert all(not step.shared_with for step in program.look(views[1]).steps)
    program.remove(views[1].view)
    assert program.look(views[1]) == alone
    assert not program._engine.graph.operators and not program._users


def test_explain_names_the_views_that_have_the_same_state() -> None:
    program = ProgramPlan()
    plan, query, values = compiled(JOINED)
    explained = explain(plan, values, query)
    assert explained.view is not None
    before = tree_text(with_reuse(explained, program.look(explained.view.request())).step)
    assert "shared with" not in before and "partial by" in before
    counted = program.add(wanted(GROUPED))
    after = tree_text(with_reuse(explained, program.look(explained.view.request())).step)
    assert f"Aggregate: count(*) by votes.story  [partial by votes.story]  [shared with {counted.view.hex()[:8]}]" in after
