"""Bundles between workers: sent directly, kept until there is a connection, given up when there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from backend.network.bundles import BundleSent
from backend.worker import shard_links
from backend.worker.shard_links import ShardLinks


class Wire:
    """The end of a connection that remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: object) -> None:
        self.sent.append(message)


def links(broken: list[int]) -> ShardLinks:
    return ShardLinks(lambda: broken.append(1))


def test_bundles_wait_for_a_connection_and_keep_their_order() -> None:
    async def scenario() -> None:
        broken: list[int] = []
        made, wire = links(broken), Wire()
        made.send(2, b"first")
        made.send(2, b"second")
        made.found(2, wire)  # type: ignore[arg-type]
        made.send(2, b"third")
        assert wire.sent == [BundleSent(b"first"), BundleSent(b"second"), BundleSent(b"third")]
        assert made.knows(wire) and not made.knows(Wire()) and not broken  # type: ignore[arg-type]

    asyncio.run(scenario())


def test_a_connection_that_ends_or_is_replaced_or_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_links, "PATIENCE_S", 0.0)

    async def scenario() -> None:
        broken: list[int] = []
        made, wire, other = links(broken), Wire(), Wire()
        made.found(1, wire)  # type: ignore[arg-type]
        made.found(1, other)  # type: ignore[arg-type]
        assert len(broken) == 1, "what was under way over the first is lost"
        made.lost(wire)  # type: ignore[arg-type]
        assert len(broken) == 1
        made.lost(other)  # type: ignore[arg-type]
        assert len(broken) == 2
        made.send(1, b"of views that are forgotten")
        made.forget()
        made.send(1, b"nobody comes for it")
        await asyncio.wait_for(_until(lambda: len(broken) == 3), 5)
        made.found(1, wire)  # type: ignore[arg-type]
        assert not wire.sent

    asyncio.run(scenario())


async def _until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)
