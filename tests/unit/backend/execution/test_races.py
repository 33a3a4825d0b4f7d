"""Statements and transactions that meet on the same rows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backend.execution.transaction import SchemaChanged, Transaction
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import Condition, InvalidStatement, MillraceError, Retryable
from tests.unit.backend.execution.engine import Engine, run

COUNTER = "CREATE TABLE c (id INT PRIMARY KEY, n INT NOT NULL)"
PERSON = "CREATE TABLE p (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT, KEY (n))"


def test_statements_on_one_row_at_the_same_time_all_count(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        await engine.run("INSERT INTO c VALUES (1, 0)")
        await asyncio.gather(*(engine.run("UPDATE c SET n = n + 1 WHERE id = 1") for _ in range(30)))
        assert await engine.rows("SELECT n FROM c") == [(30,)]

    run(tmp_path, scenario)


def test_one_of_many_inserts_of_the_same_unique_key_wins(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        results = await asyncio.gather(
            *(engine.run("INSERT INTO p (name) VALUES ('a')") for _ in range(10)), return_exceptions=True
        )
        errors = [result for result in results if isinstance(result, MillraceError)]
        assert {error.condition for error in errors} == {Condition.DUPLICATE_ENTRY}
        assert len(errors) == 9
        assert await engine.rows("SELECT name FROM p") == [("a",)]

    run(tmp_path, scenario)


def test_upserts_of_one_key_at_the_same_time_all_count(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        await asyncio.gather(
            *(engine.run("INSERT INTO c VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1") for _ in range(20))
        )
        assert await engine.rows("SELECT n FROM c") == [(20,)]

    run(tmp_path, scenario)


def test_statements_that_gave_up_waiting_for_a_row_have_not_happened(tmp_path: Path) -> None:
    """Whoever is told 1205 may try again: nothing of it may be committed afterwards."""

    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        await engine.run("INSERT INTO c VALUES (1, 0)")
        holder = engine.database.begin()
        await engine.run("UPDATE c SET n = 100", holder)
        waiting = [engine.run("UPDATE c SET n = n + 1 WHERE id = 1", lock_timeout_s=0.1) for _ in range(8)]
        errors = await asyncio.gather(*waiting, return_exceptions=True)
        assert {error.condition for error in errors if isinstance(error, MillraceError)} == {Condition.LOCK_WAIT_TIMEOUT}
        assert len(errors) == 8
        await holder.commit()
        await engine.run("UPDATE c SET n = n + 1 WHERE id = 1")
        assert await engine.rows("SELECT n FROM c") == [(101,)]

    run(tmp_path, scenario)


def test_the_second_of_two_transactions_that_write_a_row_waits_and_counts_on(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        await engine.run("INSERT INTO c VALUES (1, 0)")
        first, second = engine.database.begin(), engine.database.begin()
        await engine.run("UPDATE c SET n = n + 1", first)
        waiting = asyncio.ensure_future(engine.run("UPDATE c SET n = n + 10", second))
        alone = asyncio.ensure_future(engine.run("UPDATE c SET n = n + 100 WHERE n > 0"))
        done, _ = await asyncio.wait({waiting, alone}, timeout=0.05)
        assert not done - {alone}  # n > 0 finds nothing before the commit, so it may be over
        await first.commit()
        await waiting
        await second.commit()
        await alone
        assert await engine.rows("SELECT n FROM c") in ([(11,)], [(111,)])

    run(tmp_path, scenario)


def test_a_race_is_decided_by_versions_if_the_locks_are_lost(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        await engine.run("INSERT INTO c VALUES (1, 0)")
        first, second = engine.database.begin(), engine.database.begin()
        for transaction, more in ((first, 1), (second, 10)):
            await engine.run(f"UPDATE c SET n = n + {more}", transaction)
            lose_locks(engine, transaction)
        await first.commit()
        with pytest.raises(Retryable) as raised:
            await second.commit()
        assert raised.value.condition is Condition.DEADLOCK
        assert await engine.rows("SELECT n FROM c") == [(1,)]

    run(tmp_path, scenario)


def test_a_row_read_for_update_must_not_have_changed_at_the_commit(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        await engine.run("INSERT INTO c VALUES (1, 0), (2, 0)")
        transaction = engine.database.begin()
        [(read,)] = await engine.rows("SELECT n FROM c WHERE id = 1 FOR UPDATE", transaction)
        await engine.run(f"UPDATE c SET n = {read} + 1 WHERE id = 2", transaction)
        lose_locks(engine, transaction)
        await engine.run("UPDATE c SET n = 5 WHERE id = 1")
        with pytest.raises(Retryable):
            await transaction.commit()
        assert await engine.rows("SELECT n FROM c") == [(5,), (0,)]

    run(tmp_path, scenario)


def lose_locks(engine: Engine, transaction: Transaction) -> None:
    """As a worker that is restarted does."""
    assert transaction.locks.owner is not None
    engine.store.unlock(transaction.locks.owner, ())


def test_others_see_nothing_of_a_transaction_before_its_commit_and_all_of_it_after(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        transaction = engine.database.begin()
        await engine.run("INSERT INTO p (name, n) VALUES ('a', 1), ('b', 2)", transaction)
        for look in ("SELECT * FROM p", "SELECT * FROM p WHERE n = 1", "SELECT * FROM p WHERE name = 'b'"):
            assert await engine.rows(look) == []
            assert await engine.rows(look, transaction) != []
        await transaction.commit()
        assert await engine.rows("SELECT name FROM p ORDER BY id") == [("a",), ("b",)]

    run(tmp_path, scenario)


def test_a_transaction_finds_its_own_changes_along_every_index(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        await engine.run("INSERT INTO p (name, n) VALUES ('a', 1), ('b', 2), ('c', 3)")
        transaction = engine.database.begin()
        await engine.run("UPDATE p SET n = 9 WHERE n = 1", transaction)
        await engine.run("UPDATE p SET name = 'z' WHERE name = 'b'", transaction)
        await engine.run("DELETE FROM p WHERE n = 3", transaction)
        await engine.run("UPDATE p SET id = 77 WHERE name = 'z'", transaction)
        assert await engine.rows("SELECT name FROM p WHERE n = 1", transaction) == []
        assert await engine.rows("SELECT name FROM p WHERE n = 9", transaction) == [("a",)]
        assert await engine.rows("SELECT id FROM p WHERE name = 'b'", transaction) == []
        assert await engine.rows("SELECT id FROM p WHERE name = 'z'", transaction) == [(77,)]
        assert await engine.rows("SELECT id, name FROM p ORDER BY id DESC", transaction) == [(77, "z"), (1, "a")]
        assert await engine.rows("SELECT id FROM p WHERE id BETWEEN 2 AND 100", transaction) == [(77,)]
        with pytest.raises(InvalidStatement) as raised:
            await engine.run("INSERT INTO p (name) VALUES ('z')", transaction)
        assert str(raised.value) == "Duplicate entry 'z' for key 'p.name'"
        await engine.run("INSERT INTO p (name) VALUES ('b')", transaction)
        await transaction.commit()
        assert await engine.rows("SELECT name FROM p ORDER BY name") == [("a",), ("b",), ("z",)]

    run(tmp_path, scenario)


def test_a_statement_planned_before_the_table_changed_is_to_be_planned_again(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(COUNTER)
        plan, values = engine.plans.plan_text("INSERT INTO c VALUES (1, 0)", engine.database.catalog, "d", DEFAULT_SETTINGS)
        await engine.define("ALTER TABLE c ADD COLUMN extra INT")
        with pytest.raises(SchemaChanged):
            await engine.database.execute(plan, values)
        assert await engine.rows("SELECT * FROM c") == []

    run(tmp_path, scenario)


def test_a_failed_statement_leaves_its_transaction_as_it_was(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        transaction = engine.database.begin()
        await engine.run("INSERT INTO p (name) VALUES ('a')", transaction)
        with pytest.raises(InvalidStatement):
            await engine.run("INSERT INTO p (name) VALUES ('b'), ('c'), ('a')", transaction)
        await transaction.commit()
        assert await engine.rows("SELECT name FROM p") == [("a",)]

    run(tmp_path, scenario)
