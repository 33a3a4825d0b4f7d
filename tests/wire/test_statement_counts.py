"""What an adapter tells of the statements it has answered: from shared memory, a worker's view, or the tables, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from backend.execution import counted_statements
from backend.processes.statement_counts import (
    EDGES_S,
    KindCount,
    StatementCount,
    merged_kinds,
    merged_statements,
    quantiles,
)
from tests.wire.worker_server import WorkerServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with WorkerServer(tmp_path_factory.mktemp("counts")) as found:
        with connected(found, None) as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT)")
            cursor.execute("INSERT INTO d.t VALUES (1, 10, 5), (2, 20, 5), (3, 10, 6)")
        yield found


def connected(server: WorkerServer, database: str | None = "d") -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, user="root", database=database, autocommit=True).cursor()


def told(server: WorkerServer) -> dict[str, StatementCount]:
    assert server.server is not None
    environment = server.server.environment
    return {each.text: each for each in environment.statements.statements(environment.database)}


def totals(server: WorkerServer) -> dict[str, KindCount]:
    assert server.server is not None
    return {each.kind: each for each in server.server.environment.statements.totals()}


def test_a_query_that_repeats_is_answered_from_its_view(server: WorkerServer) -> None:
    with connected(server) as cursor:
        for _ in range(20):
            cursor.execute("SELECT a, COUNT(*) FROM t WHERE b = 5 GROUP BY a")
    found = told(server)["SELECT a, COUNT(*) FROM t WHERE b = ? GROUP BY a"]
    assert found.count == 20 and found.evaluated >= 1 and found.asked >= 1 and found.hits >= 10
    assert found.hits + found.asked + found.evaluated == 20
    assert found.database == "d" and len(found.views) == 1 and found.why == ""
    assert found.seconds > 0 and found.longest_s > 0 and sum(found.bins) >= found.evaluated


def test_a_session_knows_what_answered_it(server: WorkerServer) -> None:
    with connected(server) as cursor:
        cursor.execute("SELECT a FROM t WHERE a > RAND()")
        for _ in range(20):
            cursor.execute("SELECT b, COUNT(*) FROM t WHERE a = 10 GROUP BY b")
        cursor.execute("SHOW SESSION STATUS LIKE 'Millrace_reads_%'")
        found = {name: int(value) for name, value in cursor.fetchall()}
    assert found["Millrace_reads_tables"] >= 2 and found["Millrace_reads_memory"] >= 10 and sum(found.values()) == 21


def test_what_is_evaluated_says_why_and_what_to_do(server: WorkerServer) -> None:
    with connected(server) as cursor:
        for _ in range(3):
            cursor.execute("SELECT a FROM t WHERE b = 5 AND a > RAND()")
    found = told(server)["SELECT a FROM t WHERE b = ? AND a > RAND()"]
    assert (found.count, found.evaluated, found.hits) == (3, 3, 0)
    assert found.views == [] and found.why and found.advice


def test_kinds_have_totals_also_of_writes_errors_and_what_has_no_plan(server: WorkerServer) -> None:
    before = totals(server)
    with connected(server) as cursor:
        cursor.execute("SHOW TABLES")
        for number in (100, 101, 102):
            cursor.execute(f"INSERT INTO t VALUES ({number}, 0, 0)")
        with pytest.raises(pymysql.err.IntegrityError):
            cursor.execute("INSERT INTO t VALUES (100, 0, 0)")
        cursor.execute("DELETE FROM t WHERE id >= 100")
    after = totals(server)
    assert after["insert"].count - before["insert"].count == 4
    assert after["insert"].errors - before["insert"].errors == 1
    assert after["show"].count >= 1 and after["delete"].count >= 1
    assert sum(after["insert"].bins) == after["insert"].count


def test_totals_outlive_statements_that_are_forgotten(server: WorkerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    before = totals(server)["select"].count
    monkeypatch.setattr(counted_statements, "STATEMENTS_MAX", 6)
    with connected(server) as cursor:
        for number in range(12):
            cursor.execute(f"SELECT a AS c{number} FROM t WHERE id = 1")
    assert len(told(server)) <= 6
    assert totals(server)["select"].count == before + 12


def test_slow_statements_are_remembered(server: WorkerServer, tmp_path: Path) -> None:
    with connected(server) as cursor:
        cursor.execute("SELECT SLEEP(0.15)")
    assert server.server is not None
    last = server.server.environment.statements.slow[-1]
    assert (last.user, last.database, last.text) == ("root", "d", "SELECT SLEEP(0.15)") and last.seconds >= 0.15


def test_quantiles_lie_within_their_bins() -> None:
    bins = [0] * (len(EDGES_S) + 1)
    assert quantiles(bins, [0.5]) == [None]
    bins[7] = 99
    bins[20] = 1
    median, highest = quantiles(bins, [0.5, 1.0])
    assert median is not None and EDGES_S[6] < median <= EDGES_S[7] and highest == EDGES_S[20]


def test_several_adapters_are_added_up() -> None:
    one = StatementCount("d", "SELECT 1", "select", 2, 1, 0, 1, 0, 0.5, 0.3, 1.0, [1], [b"x"], "old", "")
    two = StatementCount("d", "SELECT 1", "select", 3, 3, 0, 0, 0, 0.1, 0.1, 2.0, [], [b"y"], "", "")
    [merged] = merged_statements([one, two])
    assert (merged.count, merged.hits, merged.bins, merged.views, merged.why) == (5, 4, [1], [b"x", b"y"], "")
    kinds = merged_kinds([KindCount("select", 1, 0, 0, 1, 0, 0.1, [1, 0]), KindCount("select", 2, 2, 0, 0, 0, 0.2, [0, 2])])
    assert kinds["select"].bins == [1, 2] and kinds["select"].count == 3
