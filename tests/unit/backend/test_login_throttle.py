"""How long guesses of passwords wait, and how much is remembered of them."""

from __future__ import annotations

import asyncio

from backend.network import login_throttle
from backend.network.login_throttle import Delays, LoginThrottle


def test_the_delay_grows_with_failures_and_ends_with_a_success() -> None:
    throttle = LoginThrottle(Delays(threshold=3, min_ms=1_500, max_ms=4_000))
    delays = []
    for _ in range(8):
        delays.append(throttle.delay_s("root", "10.0.0.1"))
        throttle.failed("root", "10.0.0.1")
    assert delays == [0, 0, 0, 1.5, 2, 3, 4, 4]
    assert throttle.delay_s("root", "10.0.0.2") == throttle.delay_s("other", "10.0.0.1") == 0
    throttle.succeeded("root", "10.0.0.1")
    assert throttle.delay_s("root", "10.0.0.1") == 0


def test_without_a_threshold_nobody_waits() -> None:
    throttle = LoginThrottle(Delays(threshold=0))
    for _ in range(100):
        throttle.failed("root", "h")
    assert throttle.delay_s("root", "h") == 0


def test_what_is_remembered_is_bounded() -> None:
    throttle = LoginThrottle()
    for number in range(login_throttle.FAILURES_MAX + 500):
        throttle.failed(f"user {number}", "h")
        throttle.failed("root", "h")
    assert len(throttle._failures) == login_throttle.FAILURES_MAX
    assert throttle.delay_s("root", "h") > 0, "the least recent go"


def test_guesses_in_parallel_are_turned_away_and_nobody_else_waits() -> None:
    async def main() -> None:
        throttle = LoginThrottle(Delays(threshold=1, min_ms=30, max_ms=30))
        throttle.failed("root", "h")
        guesses = [asyncio.ensure_future(throttle.wait("root", "h")) for _ in range(20)]
        assert await throttle.wait("root", "elsewhere")
        assert not any(each.done() and each.result() for each in guesses)
        assert sum(await asyncio.gather(*guesses)) == login_throttle.WAITING_OF_ONE_MAX
        assert throttle.delayed_count == 20 and not throttle._waiting

    asyncio.run(main())
