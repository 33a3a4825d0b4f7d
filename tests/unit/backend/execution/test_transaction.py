"""Transactions over a real store of two shards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from backend.clustering.store import ABSENT, ANY, Committed, Conflict
from backend.execution.local_store import LocalStore
from backend.execution.transaction import OWN, Address, Transaction
from dataflow.errors import Condition, InvalidStatement, Retryable

A: Address = (0, b"ra")
B: Address = (1, b"rb")

Scenario = Callable[[LocalStore], Awaitable[None]]


def run(folder: Path, scenario: Scenario) -> None:
    store = LocalStore(folder, shard_count=2)
    try:
        asyncio.run(scenario(store))  # type: ignore[arg-type]
    finally:
        store.close()


async def put(store: LocalStore, *writes: tuple[Address, bytes]) -> None:
    transaction = Transaction(store)
    for address, value in writes:
        transaction.put(address, ANY, value)
    await transaction.commit()


def test_own_writes_are_seen_before_the_commit_and_by_nobody_else(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        transaction = Transaction(store)
        transaction.put(A, ABSENT, b"1")
        assert await transaction.get([A, B]) == [(OWN, b"1"), None]
        assert await Transaction(store).get([A, B]) == [None, None]

    run(tmp_path, scenario)


def test_a_commit_over_two_shards_happens_as_a_whole(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        await put(store, (A, b"1"), (B, b"1"))
        [first, second] = await store.get([A, B])
        assert first is not None and second is not None and first[0] == second[0]

    run(tmp_path, scenario)


def test_a_commit_that_lost_a_race_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        await put(store, (A, b"old"))
        loser = Transaction(store)
        [stored] = await loser.get([A])
        assert stored is not None
        loser.put(A, stored[0], b"loser")
        loser.put(B, ABSENT, b"loser")
        await put(store, (A, b"winner"))
        with pytest.raises(Retryable) as raised:
            await loser.commit()
        assert raised.value.condition is Condition.DEADLOCK
        [first, second] = await store.get([A, B])
        assert first is not None and first[1] == b"winner" and second is None

    run(tmp_path, scenario)


def test_a_check_refuses_the_commit_when_the_key_was_changed(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        await put(store, (A, b"old"))
        transaction = Transaction(store)
        [stored] = await transaction.get([A])
        assert stored is not None
        transaction.check(A, stored[0])
        transaction.put(B, ABSENT, b"1")
        await put(store, (A, b"new"))
        assert isinstance(await transaction.try_commit(), Conflict)

    run(tmp_path, scenario)


def test_a_row_inserted_and_deleted_again_is_no_write_at_all(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        transaction = Transaction(store)
        transaction.put(A, ABSENT, b"1")
        transaction.put(A, ABSENT, None)
        assert transaction.is_empty
        await put(store, (A, b"someone else's"))
        assert isinstance(await transaction.try_commit(), Committed)

    run(tmp_path, scenario)


def test_rolling_back_to_a_savepoint_restores_exactly_what_was_pending_then(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        await put(store, (A, b"stored"))
        transaction = Transaction(store)
        transaction.put(A, ANY, b"1")
        transaction.savepoint("s")
        transaction.put(A, ANY, None)
        transaction.put(B, ABSENT, b"2")
        assert await transaction.get([A, B]) == [None, (OWN, b"2")]
        transaction.rollback_to("S")
        assert await transaction.get([A, B]) == [(OWN, b"1"), None]
        transaction.rollback_to("s")  # it is still there
        transaction.release("s")
        with pytest.raises(InvalidStatement) as raised:
            transaction.rollback_to("s")
        assert raised.value.condition is Condition.SAVEPOINT_MISSING

    run(tmp_path, scenario)


def test_a_savepoint_set_again_moves_and_later_ones_go_with_a_rollback(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        transaction = Transaction(store)
        transaction.savepoint("s")
        transaction.put(A, ABSENT, b"1")
        transaction.savepoint("s")
        transaction.savepoint("t")
        transaction.put(B, ABSENT, b"1")
        transaction.rollback_to("s")
        assert await transaction.get([A, B]) == [(OWN, b"1"), None]
        with pytest.raises(InvalidStatement):
            transaction.rollback_to("t")

    run(tmp_path, scenario)


def test_a_transaction_beyond_its_size_is_refused_and_can_go_on(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        transaction = Transaction(store, size_bytes_max=1_000)
        mark = transaction.mark()
        with pytest.raises(InvalidStatement) as raised:
            for number in range(100):
                transaction.put((0, b"r%d" % number), ABSENT, bytes(100))
        assert raised.value.condition is Condition.TRANSACTION_TOO_LARGE
        transaction.rollback_to_mark(mark)
        transaction.put(A, ABSENT, b"1")
        assert isinstance(await transaction.try_commit(), Committed)

    run(tmp_path, scenario)


def test_a_table_that_changed_within_a_transaction_is_a_deadlock(tmp_path: Path) -> None:
    async def scenario(store: LocalStore) -> None:
        transaction = Transaction(store)
        transaction.use_table(1, 1)
        with pytest.raises(Retryable):
            transaction.use_table(1, 2)

    run(tmp_path, scenario)
