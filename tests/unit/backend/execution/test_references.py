"""Foreign keys where statements meet: of a child's insert and its parent's delete, one wins."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from backend.clustering.store import Committed, Conflict
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import Condition, InvalidStatement, MillraceError
from persistence.layout import fence
from tests.unit.backend.execution.engine import Engine, run

PARENT = "CREATE TABLE p (id INT PRIMARY KEY, code VARCHAR(9) UNIQUE, n INT)"
CHILD = "CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))"
BY_CODE = "CREATE TABLE c (id INT PRIMARY KEY, pid VARCHAR(9), FOREIGN KEY (pid) REFERENCES p (code))"
CASCADING = "CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE)"


@pytest.mark.parametrize("shard_count", (1, 3))
@pytest.mark.parametrize(("child", "value"), ((CHILD, "1"), (BY_CODE, "'a'"), (CASCADING, "1")))
def test_of_a_childs_insert_and_its_parents_delete_one_is_refused(
    child: str, value: str, shard_count: int, tmp_path: Path
) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PARENT, child)
        for first_deletes in (True, False):
            await engine.run("INSERT INTO p VALUES (1, 'a', 0)")
            deleting, inserting = engine.database.begin(), engine.database.begin()
            await engine.run("DELETE FROM p WHERE id = 1", deleting)
            await engine.run(f"INSERT INTO c VALUES (1, {value})", inserting)
            for each in (deleting, inserting):
                each.locks.release()  # as when a worker is restarted
            first, second = (deleting, inserting) if first_deletes else (inserting, deleting)
            assert isinstance(await first.try_commit(), Committed)
            assert isinstance(await second.try_commit(), Conflict)
            await engine.run("DELETE FROM c")
            await engine.run("DELETE FROM p")

    run(tmp_path, scenario, shard_count)


def test_children_of_one_parent_and_its_updates_do_not_disturb_each_other(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PARENT, CHILD)
        await engine.run("INSERT INTO p VALUES (1, 'a', 0)")
        transactions = [engine.database.begin() for _ in range(5)]
        for number, transaction in enumerate(transactions):
            await engine.run(f"INSERT INTO c VALUES ({number}, 1)", transaction)
        await engine.run("UPDATE p SET n = 1")
        for transaction in transactions:
            assert isinstance(await transaction.try_commit(), Committed)

    run(tmp_path, scenario)


def test_no_child_is_left_without_its_parent_whatever_meets(tmp_path: Path) -> None:
    async def attempt(engine: Engine, sql: str) -> None:
        try:
            await engine.run(sql)
        except MillraceError as error:
            expected = (Condition.NO_REFERENCED_ROW, Condition.ROW_IS_REFERENCED, Condition.DUPLICATE_ENTRY)
            assert error.condition in expected, error

    async def scenario(engine: Engine) -> None:
        await engine.define(PARENT, CASCADING)
        for round_ in range(15):
            statements: list[str] = []
            for key in range(3):
                statements += (
                    f"INSERT INTO p VALUES ({key}, NULL, 0)",
                    f"DELETE FROM p WHERE id = {key}",
                    f"UPDATE p SET id = {key + 10} WHERE id = {key}",
                    f"INSERT INTO c VALUES ({round_ * 100 + key}, {key})",
                    f"INSERT INTO c VALUES ({round_ * 100 + 50 + key}, {key})",
                    f"UPDATE c SET pid = {(key + 1) % 3} WHERE pid = {key}",
                )
            await asyncio.gather(*(attempt(engine, sql) for sql in statements))
            orphans = await engine.rows("SELECT id FROM c WHERE pid NOT IN (SELECT id FROM p)")
            assert orphans == []

    run(tmp_path, scenario)


def test_an_unchecked_session_may_leave_orphans(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        unchecked = replace(DEFAULT_SETTINGS, foreign_key_checks=False)

        async def run_unchecked(sql: str) -> None:
            plan, values = engine.plans.plan_text(sql, engine.database.catalog, "d", unchecked)
            await engine.database.execute(plan, values, None, engine.modes)

        await engine.database.define(CHILD, "d", unchecked)
        await run_unchecked("INSERT INTO c VALUES (1, 7)")
        with pytest.raises(InvalidStatement):
            await engine.run("INSERT INTO c VALUES (2, 7)")  # there is no table p at all
        await engine.define(PARENT)
        with pytest.raises(InvalidStatement):
            await engine.run("INSERT INTO c VALUES (2, 7)")
        await engine.run("INSERT INTO p VALUES (7, NULL, 0)")
        await engine.run("INSERT INTO c VALUES (2, 7)")
        await run_unchecked("DELETE FROM p")
        assert await engine.rows("SELECT id FROM c ORDER BY id") == [(1,), (2,)]

    run(tmp_path, scenario)


def test_a_guard_goes_with_its_key(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PARENT, CASCADING)
        await engine.run("INSERT INTO p VALUES (1, 'a', 0), (2, 'b', 0)")
        await engine.run("INSERT INTO c VALUES (1, 1), (2, 2)")
        shard = engine.store.shards[0]
        assert shard.first_key(b"g", fence(b"g")) is not None
        await engine.run("DELETE FROM p")
        assert shard.first_key(b"g", fence(b"g")) is None

    run(tmp_path, scenario, shard_count=1)
