"""A view that hangs while it is filled beside the epochs is set aside, and others are filled, with any number of workers."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pymysql
import pytest

from backend.views import view_filling
from dataflow.runtime.loading import FillBudget
from tests.wire.worker_server import worker_server

DEADLINE_S = 60.0
ROWS = 6000


@pytest.mark.parametrize("workers", [1, 2])
def test_a_fill_that_does_not_get_on_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(view_filling, "STUCK_S", 0.2)
    ended, spend = threading.Event(), FillBudget.__call__
    hanging: list[FillBudget] = []

    def hang(budget: FillBudget, rows: int) -> None:
        if not hanging:
            hanging.append(budget)
            ended.wait()
        spend(budget, rows)

    monkeypatch.setattr(FillBudget, "__call__", hang)
    with worker_server(tmp_path, workers=workers) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT)")
            cursor.execute("INSERT INTO t VALUES " + ", ".join(f"({n}, {n % 7})" for n in range(ROWS)))

            def until(sql: str, answer: int, state: str) -> str:
                """Ask until a view is in this state; why it is."""
                deadline = time.monotonic() + DEADLINE_S
                while True:
                    cursor.execute(sql)
                    assert sum(count for _, count in cursor.fetchall()) == answer
                    cursor.execute(f"SELECT reason FROM millrace.views WHERE state = '{state}'")
                    if found := cursor.fetchall():
                        return str(found[0][0])
                    assert time.monotonic() < deadline

            assert "nothing was read" in until("SELECT g, COUNT(*) FROM t GROUP BY g", ROWS, "set aside")
            until("SELECT g, SUM(g > 1) FROM t GROUP BY g", sum(n % 7 > 1 for n in range(ROWS)), "full")
            cursor.execute("INSERT INTO t VALUES (-1, 5)")
            until("SELECT g, SUM(g > 1) FROM t GROUP BY g", 1 + sum(n % 7 > 1 for n in range(ROWS)), "full")
        ended.set()
