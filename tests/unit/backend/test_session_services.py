"""Locks and questions across adapters, over real connections to the process that keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from backend.clustering.cluster import Cluster
from backend.network.transport import listen
from backend.worker.session_services import ClusterServices, SessionServices
from controller.registry import Address

SECRET = b"s" * 32


class Keeper:
    """Worker 0 as far as it matters here, and the adapters that know of it."""

    def __init__(self) -> None:
        self.services = SessionServices()
        self.adapters: list[ClusterServices] = []
        self.lost: list[int] = []

    async def start(self, adapters: int) -> None:
        services = self.services
        _, port = await listen("127.0.0.1", 0, SECRET, services.handle, on_lost=services.peer_lost)
        for number in range(adapters):
            cluster = Cluster(1, SECRET)
            cluster.set_addresses({0: Address("127.0.0.1", port)})
            adapter = ClusterServices(cluster)

            async def answer(question: bytes, number: int = number) -> bytes:
                return question + str(number).encode()

            adapter.serve(answer, self.lost.append)
            self.adapters.append(adapter)
            await adapter.owner("joined")


def run(scenario: Callable[[Keeper], Awaitable[None]], adapters: int = 3) -> None:
    async def main() -> None:
        keeper = Keeper()
        await keeper.start(adapters)
        await asyncio.wait_for(scenario(keeper), 10)
        for adapter in keeper.adapters:
            adapter.close()

    asyncio.run(main())


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_a_lock_excludes_other_adapters() -> None:
    async def scenario(keeper: Keeper) -> None:
        first, second, third = keeper.adapters
        assert await first.acquire("job", 1, 0)
        assert await first.acquire("JOB", 1, 0)
        assert not await second.acquire("job", 2, 0)
        assert await second.owner("job") == 1
        assert await second.release("job", 2) is False
        waiting = asyncio.ensure_future(third.acquire("job", 3, -1))
        assert await first.release("job", 1)
        assert await first.release("job", 1)
        assert await waiting
        assert await first.release("job", 1) is False
        assert await third.release_all(3) == 1
        assert await first.release("job", 1) is None

    run(scenario)


def test_a_lock_goes_with_its_adapter_and_with_its_connection() -> None:
    async def scenario(keeper: Keeper) -> None:
        first, second, third = keeper.adapters
        assert await first.acquire("a", 1, 0) and await second.acquire("b", 2, 0)
        waiting = [asyncio.ensure_future(third.acquire(name, 3 + place, -1)) for place, name in enumerate("ab")]
        first.owner_gone(1)
        assert await waiting[0]
        second.close()
        assert await waiting[1]

    run(scenario)


def test_an_interrupted_wait_leaves_nothing_behind() -> None:
    async def scenario(keeper: Keeper) -> None:
        first, second, third = keeper.adapters
        assert await first.acquire("a", 1, 0)
        waiting = asyncio.ensure_future(second.acquire("a", 2, -1))
        await second.owner("a")  # the request before it has arrived
        waiting.cancel()
        await second.owner("a")
        await first.release_all(1)
        assert await third.owner("a") is None

    run(scenario)


def test_who_held_locks_is_told_when_they_are_lost() -> None:
    async def scenario(keeper: Keeper) -> None:
        (adapter,) = keeper.adapters
        assert await adapter.acquire("a", 7, 0)
        assert await adapter.acquire("b", 8, 0)
        assert await adapter.release("b", 8)
        for peer in list(keeper.services._owners):
            peer.close()
        await until(lambda: keeper.lost)
        assert keeper.lost == [7]
        assert await adapter.owner("a") is None

    run(scenario, adapters=1)


def test_a_question_reaches_all_others() -> None:
    async def scenario(keeper: Keeper) -> None:
        answers = await keeper.adapters[1].ask_others(b"who?")
        assert sorted(answers) == [b"who?0", b"who?2"]

    run(scenario)
