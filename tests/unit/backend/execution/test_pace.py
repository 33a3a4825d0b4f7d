"""Statements in slices: others get their turn inside any computation, and KILL reaches it there."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import time
from itertools import pairwise
from typing import Any

import pytest

from backend.execution.memory_account import MemoryAccount
from backend.execution.pace import SLICE_S, account, breathe, paced, parts
from backend.execution.rows import Rows, Weight, held
from dataflow.errors import Condition, MillraceError

word = contextvars.ContextVar("word", default="")


def spin(seconds: float) -> int:
    """Work that takes so long, without an `await`."""
    end, count = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        breathe()
        count += 1
    return count


async def longest_turn(work: Any) -> tuple[Any, float, int]:
    """What `work` gives, the longest processor time between two turns of another task, and how many it had."""
    gc.freeze()  # what other tests have left is not looked at, as in an adapter
    turns = [time.thread_time()]
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0)
        turns.append(time.thread_time())
    return await task, max(b - a for a, b in pairwise(turns)), len(turns)


async def work(seconds: float) -> int:
    count = spin(seconds)
    await asyncio.sleep(0.001)
    return count + spin(seconds)


def test_others_get_their_turn_within_a_synchronous_computation() -> None:
    async def main() -> None:
        found, longest, _ = await longest_turn(paced(work(0.1), MemoryAccount()))
        assert found > 0
        assert longest < 10 * SLICE_S

    asyncio.run(main())


def test_outside_of_paced_nothing_is_interrupted() -> None:
    async def main() -> None:
        assert (await longest_turn(work(0.05)))[1] > 0.04
        assert account() is None

    asyncio.run(main())


def test_many_statements_share_one_slice_in_a_turn() -> None:
    async def main() -> None:
        together = asyncio.gather(*(paced(work(0.05), MemoryAccount()) for _ in range(8)))
        assert (await longest_turn(together))[1] < 20 * SLICE_S  # not eight slices each time

    asyncio.run(main())


def test_a_cancelled_task_learns_of_it_where_it_breathes() -> None:
    async def main() -> None:
        ended: list[str] = []

        async def endless() -> None:
            try:
                spin(60)
            finally:
                ended.append("tidied")

        task = asyncio.ensure_future(paced(endless(), MemoryAccount()))
        await asyncio.sleep(0.02)
        started = time.thread_time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["tidied"]
        assert time.thread_time() - started < 0.1

    asyncio.run(main())


def test_values_errors_and_context_pass_through() -> None:
    async def inner() -> str:
        word.set("heard")
        spin(2 * SLICE_S)
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        assert asyncio.current_task() is not None
        return word.get()

    async def failing() -> None:
        await asyncio.sleep(0)
        spin(2 * SLICE_S)
        raise KeyError("x")

    async def main() -> None:
        assert await paced(inner(), MemoryAccount()) == "heard"
        assert word.get() == "heard"
        with pytest.raises(KeyError):
            await paced(failing(), MemoryAccount())

    asyncio.run(main())


def test_parts_are_all_rows_in_order_with_breaths_between() -> None:
    async def whole(count: int) -> list[int]:
        return [row for part in parts(range(count)) for row in part]

    async def slow() -> int:
        return sum(spin(0.0005) > 0 for part in parts(range(200)) for _ in part)

    async def main() -> None:
        for count in (0, 1, 32, 33, 100_000):
            assert await paced(whole(count), MemoryAccount()) == list(range(count))
        count, longest, _ = await longest_turn(paced(slow(), MemoryAccount()))
        assert count == 200 and longest < 0.03

    asyncio.run(main())


def test_held_rows_count_until_they_are_dropped_and_go_in_slices() -> None:
    mine = MemoryAccount(100 << 20)

    async def hold() -> None:
        rows = held([(number, f"{number:0100}") for number in part] for part in parts(range(200_000)))
        assert len(rows) == 200_000
        assert 30 << 20 < mine.held_bytes < 90 << 20
        del rows

    async def main() -> None:
        _, longest, _ = await longest_turn(paced(hold(), mine))
        assert longest < 0.05
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert mine.held_bytes == 0

    asyncio.run(main())


def test_too_much_memory_is_an_error_with_its_limit() -> None:
    async def hold() -> None:
        rows: Rows[tuple[str]] = Rows()
        while True:
            rows.add([("x" * 10_000 + str(len(rows)),)])

    async def weigh() -> None:
        Weight().add(2 << 20)

    async def main() -> None:
        for each in (hold, weigh):
            mine = MemoryAccount(1 << 20)
            with pytest.raises(MillraceError) as failure:
                await paced(each(), mine)
            assert failure.value.condition is Condition.CAPACITY_EXCEEDED
            assert "1048576 bytes for 'statement_memory'" in str(failure.value)

    asyncio.run(main())
