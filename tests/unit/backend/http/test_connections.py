"""Connections over HTTP that ask for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice

import pytest
from aiohttp import web

from backend.http import connections
from backend.http.connections import HttpConnections
from backend.http.server import application

REQUEST = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """The port of a server, and what its /slow waits for."""
    release, watched = asyncio.Event(), HttpConnections()

    async def slow(request: web.Request) -> web.Response:
        await release.wait()
        return web.Response(text="slow")

    runner = web.AppRunner(application([web.get("/slow", slow)], watched))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    assert runner.server is not None
    watched.watch(runner.server)
    yield runner.addresses[0][1], release
    watched.stop()
    await runner.cleanup()


def test_who_asks_for_nothing_is_sent_away_and_who_waits_for_an_answer_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FIRST_REQUEST_S", 0.1), ("IDLE_S", 0.1), ("SWEEP_S", 0.02)):
        monkeypatch.setattr(connections, name, value)

    async def main() -> None:
        async with listening() as (port, release):
            waiting, asking = await asyncio.open_connection("127.0.0.1", port)
            asking.write(REQUEST % b"slow")
            for begun in (b"", b"GET / HT", REQUEST % b""):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(begun)
                try:
                    found = await asyncio.wait_for(reader.read(), 10)
                except ConnectionResetError:
                    found = b""
                assert found.startswith(b"HTTP/1.1 200") == (begun == REQUEST % b"")
                writer.close()
            release.set()
            assert await waiting.readline() == b"HTTP/1.1 200 OK\r\n"
            asking.close()

    asyncio.run(main())


def test_of_too_many_the_oldest_that_ask_for_nothing_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(connections, "SWEEP_S", 0.02)

    async def main() -> None:
        async with listening() as (port, release):
            waiting, asking = await asyncio.open_connection("127.0.0.1", port)
            asking.write(REQUEST % b"slow")
            others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
            reads = [asyncio.ensure_future(each.read()) for each, _ in others]
            for ended in islice(asyncio.as_completed(reads, timeout=20), 8):
                assert await ended == b""
            assert sum(each.done() for each in reads) == 8
            release.set()
            assert await waiting.readline() == b"HTTP/1.1 200 OK\r\n"
            for _, writer in (*others, (waiting, asking)):
                writer.close()

    asyncio.run(main())
