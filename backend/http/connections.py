"""Connections that ask for nothing: how many, and for how long.

aiohttp keeps a connection open until its first request has come, however long that takes. Here it is ended after
`FIRST_REQUEST_S`, and one that has asked before after `IDLE_S`. There are at most `CONNECTIONS_MAX`: when more come, those that
have waited longest without a request are ended. A connection whose request is being answered is never touched.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestHandler

FIRST_REQUEST_S = 10.0
IDLE_S = 90.0
CONNECTIONS_MAX = 1_024
SWEEP_S = 1.0


@dataclass(slots=True)
class _Known:
    """`since` it was opened, or its last request was answered."""

    since: float
    has_asked: bool = False
    running: int = 0


class HttpConnections:
    def __init__(self) -> None:
        self._known: dict[object, _Known] = {}
        self._sweeping: asyncio.Task[None] | None = None

    def middleware(self) -> Middleware:
        """To be the outermost one."""

        @web.middleware
        async def noted(request: web.Request, handler: Handler) -> web.StreamResponse:
            loop = asyncio.get_running_loop()
            known = self._known.setdefault(request.protocol, _Known(loop.time()))
            known.has_asked = True
            known.running += 1
            try:
                return await handler(request)
            finally:
                known.running -= 1
                known.since = loop.time()

        return noted

    def watch(self, server: web.Server) -> None:
        self._sweeping = asyncio.ensure_future(self._sweep(server))

    def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _sweep(self, server: web.Server) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.end_idle(server.connections)

    def end_idle(self, connections: list[RequestHandler]) -> None:
        now = asyncio.get_running_loop().time()
        self._known = {each: self._known.get(each) or _Known(now) for each in connections}
        idle = sorted((known.since, number) for number, known in enumerate(self._known.values()) if not known.running)
        surplus = len(connections) - CONNECTIONS_MAX
        for place, (since, number) in enumerate(idle):
            connection = connections[number]
            limit_s = IDLE_S if self._known[connection].has_asked else FIRST_REQUEST_S
            if (place < surplus or now - since > limit_s) and connection.transport is not None:
                connection.transport.abort()
