"""How many requests to the store a statement costs where nobody else is at its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.backend.execution.engine import Engine, run


def counted(engine: Engine, calls: list[str]) -> None:
    """From now on every request is noted."""
    store: Any = engine.store
    for name in ("get", "lock", "unlock", "commit"):
        original = getattr(store, name)

        def noted(*given: Any, name: str = name, original: Any = original, **more: Any) -> Any:
            calls.append(name)
            return original(*given, **more)

        setattr(store, name, noted)


@pytest.mark.parametrize(
    "sql, expected",
    [
        ("INSERT INTO t VALUES (9, 9, 9)", ["commit"]),
        ("UPDATE t SET n = n + 1 WHERE id = 1", ["lock", "commit"]),
        ("UPDATE t SET n = n + 1 WHERE id = 77", ["lock", "unlock"]),
        ("UPDATE t SET n = n + 1 WHERE u = 1", ["get", "get", "commit"]),
        ("UPDATE t SET n = n + 1", ["commit"]),  # read with a scan
        ("DELETE FROM t WHERE id = 1", ["lock", "commit"]),
        ("SELECT * FROM t WHERE u = 1", ["get", "get"]),
    ],
)
def test_locks_cost_a_statement_of_its_own_no_further_request(sql: str, expected: list[str], tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY, n INT, u INT UNIQUE)")
        await engine.run("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
        calls: list[str] = []
        counted(engine, calls)
        await engine.run(sql)
        assert calls == expected

    run(tmp_path, scenario, 1)


def test_a_transaction_reads_and_locks_at_once(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
        await engine.run("INSERT INTO t VALUES (1, 1), (2, 2)")
        calls: list[str] = []
        counted(engine, calls)
        transaction = engine.database.begin()
        for sql in ("SELECT * FROM t WHERE id = 1 FOR UPDATE", "UPDATE t SET n = 5 WHERE id = 2", "INSERT INTO t VALUES (3, 3)"):
            await engine.run(sql, transaction)
        await transaction.commit()
        assert calls == ["lock", "lock", "lock", "commit"]

    run(tmp_path, scenario, 1)
