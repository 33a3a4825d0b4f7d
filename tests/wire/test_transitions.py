"""New queries go to the program by transitions: many at once by few, and what a transition cannot do is done without it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pymysql
import pytest
from pymysql.constants.COMMAND import COM_QUERY

from backend.execution.explaining.explanation import explain
from backend.network.program_messages import AddView, ShownTransition, ViewPlan
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from tests.wire.worker_server import WorkerServer, worker_server

CONNECTIONS = 40
DEADLINE_S = 60.0
ROWS = 120
QUERY = "SELECT story, COUNT(*) FROM votes WHERE user > {} GROUP BY story ORDER BY story"
OTHER = "SELECT user, MAX(id) FROM votes WHERE story = {} GROUP BY user ORDER BY user"


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("transitions"), workers=request.param) as found:
        with connect(found) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.votes (id INT PRIMARY KEY, story INT, user INT, KEY (story))")
            cursor.execute("INSERT INTO d.votes VALUES " + ", ".join(f"({n}, {n % 7}, {n})" for n in range(ROWS)))
        yield found


def connect(server: WorkerServer, database: str | None = None) -> pymysql.connections.Connection[Any]:
    return pymysql.connect(host="127.0.0.1", port=server.port, user="root", database=database, autocommit=True)


def rows(connection: pymysql.connections.Connection[Any], sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def at_once(connections: Sequence[pymysql.connections.Connection[Any]], statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """All are sent before any is answered."""
    for connection, sql in zip(connections, statements, strict=True):
        connection._execute_command(COM_QUERY, sql)  # type: ignore[attr-defined]
    found = []
    for connection in connections:
        connection._read_query_result()  # type: ignore[attr-defined]
        found.append(list(connection._result.rows))  # type: ignore[attr-defined]
    return found


def expected(user: int) -> list[tuple[Any, ...]]:
    left = [n % 7 for n in range(ROWS) if n > user]
    return [(story, left.count(story)) for story in sorted({*left})]


def test_new_queries_of_many_connections_are_few_transitions(server: WorkerServer) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(server, "d")) for _ in range(CONNECTIONS)]
        statements, answers = [QUERY.format(n) for n in range(CONNECTIONS)], [expected(n) for n in range(CONNECTIONS)]
        deadline = time.monotonic() + DEADLINE_S
        program: list[tuple[Any, ...]] = []
        while sum(added for added, _ in program) < CONNECTIONS and time.monotonic() < deadline:
            assert at_once(connections, statements) == answers
            program = rows(connections[0], "SELECT views_added, views_removed FROM millrace.transitions ORDER BY number")
        assert sum(added for added, _ in program) == CONNECTIONS and all(not removed for _, removed in program)
        assert len(program) <= CONNECTIONS // 4, f"{program}"
        rows(connections[0], "INSERT INTO votes VALUES (1000, 3, 1000)")
        for user in (0, 5, 39):
            was = {**dict(expected(user))}
            assert rows(connections[0], QUERY.format(user)) == sorted((was | {3: was.get(3, 0) + 1}).items())


def test_hundreds_of_new_queries_at_once_are_two_transitions(server: WorkerServer) -> None:
    """What comes while the first is under way is the second, however much it is."""

    def wanted(user: int) -> AddView:
        plan, values = PlanCache().plan_text(QUERY.format(user), server.catalog, "d", DEFAULT_SETTINGS)
        view = explain(plan, values).view
        assert view is not None
        return view.request()

    async def maintain(views: list[AddView]) -> None:
        planner = server.cluster.planner
        assert planner is not None
        first = asyncio.ensure_future(planner.maintain(views[:1]))
        while not server.keeper._one_at_a_time.locked():
            await asyncio.sleep(0)
        await asyncio.gather(first, *[planner.maintain([each]) for each in views[1:]])

    server.wait_for(maintain([wanted(user) for user in range(300)]), DEADLINE_S)
    with connect(server, "d") as connection:
        program = rows(connection, "SELECT number, views_added, views_removed FROM millrace.transitions ORDER BY number")
        assert program == [(1, 1, 0), (2, 299, 0)]
        assert rows(connection, "SELECT COUNT(DISTINCT name) FROM millrace.views") == [(300,)]


def test_a_transition_says_what_it_reuses_and_so_does_explain(server: WorkerServer) -> None:
    joined = "SELECT c.n FROM (SELECT story, COUNT(*) AS n FROM votes GROUP BY story) c JOIN votes v ON v.story = c.story WHERE v.id = {}"
    with connect(server, "d") as connection:
        for sql in ("SELECT story, COUNT(*) FROM votes WHERE story = {} GROUP BY story", joined):
            for _ in range(2):
                rows(connection, sql.format(1))
        names = [name for (name,) in rows(connection, "SELECT DISTINCT name FROM millrace.views")]
        [(first,), (second,)] = rows(connection, "SELECT plan FROM millrace.transitions ORDER BY number")
        [shared] = [name for name in names if f"shared with {name[:8]}" in second]
        assert first.startswith(f"view {shared[:8]} by story is partial\n") and "shared" not in first
        [(tree,)] = rows(connection, "EXPLAIN FORMAT=TREE " + joined.format(2))
        assert f"Aggregate: count(*) by votes.story  [partial by votes.story]  [shared with {shared[:8]}]" in tree


class Away:
    """As while nobody leads."""

    async def maintain(self, views: list[AddView]) -> list[bytes]:
        return []

    async def plan(self, view: AddView) -> ViewPlan | None:
        return None

    async def transitions(self) -> list[ShownTransition]:
        return []


def test_while_nobody_plans_queries_are_evaluated_and_views_go_on(server: WorkerServer) -> None:
    with connect(server, "d") as connection:
        for _ in range(2):
            assert rows(connection, QUERY.format(50)) == expected(50)
        planner, server.cluster.planner = server.cluster.planner, Away()
        for _ in range(4):
            assert rows(connection, QUERY.format(60)) == expected(60)
            assert rows(connection, QUERY.format(50)) == expected(50)
        assert len(rows(connection, "SELECT DISTINCT name FROM millrace.views")) == 1
        assert rows(connection, "SELECT * FROM millrace.transitions") == []
        assert "shared with" not in rows(connection, "EXPLAIN FORMAT=TREE " + OTHER.format(1))[0][0]
        server.cluster.planner = planner
        for _ in range(2):
            assert rows(connection, QUERY.format(60)) == expected(60)
        assert len(rows(connection, "SELECT DISTINCT name FROM millrace.views")) == 2


def test_a_leader_that_follows_another_goes_on_from_what_that_has_recorded(server: WorkerServer) -> None:
    with connect(server, "d") as connection:
        for _ in range(2):
            rows(connection, QUERY.format(10))
        before = rows(connection, "SELECT number, views_added, plan FROM millrace.transitions")
        server.call(server.keeper.forget)
        assert rows(connection, "SELECT number, views_added, plan FROM millrace.transitions") == before
        server.wait_for(server.keeper.look())
        for _ in range(2):
            rows(connection, QUERY.format(11))
        assert [number for number, _, _ in rows(connection, "SELECT number, views_added, plan FROM millrace.transitions")] == [1, 2]
