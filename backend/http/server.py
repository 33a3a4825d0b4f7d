"""Listening for HTTP, in a thread of its own: a long statement holds up nobody who watches processes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from aiohttp import web

from backend.http.answers import REQUEST_BYTES_MAX, errors_as_json
from backend.http.description import description
from backend.http.interface import Interface
from backend.http.status import Status, status_routes
from backend.node import Node
from backend.settings import Deployment

log = logging.getLogger(__name__)


def application(routes: list[web.RouteDef]) -> web.Application:
    found = web.Application(middlewares=[errors_as_json], client_max_size=REQUEST_BYTES_MAX)

    async def show_description(request: web.Request) -> web.Response:
        return web.json_response(description())

    async def show_index(request: web.Request) -> web.Response:
        return web.json_response({"paths": ["/status", "/health", "/metrics", "/openapi.json"]})

    found.add_routes([web.get("/", show_index), web.get("/openapi.json", show_description), *routes])
    return found


class HttpServer:
    """From `start` to `stop`, both called on the event loop that `status` belongs to."""

    def __init__(self, host: str, port: int, status: Status, deployment: Deployment) -> None:
        self._host = host
        self.port = port
        self._status = status
        self._deployment = deployment
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)
        self._node: Node | None = None
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Raises OSError if the port is taken."""
        self._thread.start()
        watched = asyncio.get_running_loop()

        async def status() -> dict[str, Any]:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(self._status), watched))

        await self._there(lambda: self._open(status))

    async def stop(self) -> None:
        if self._thread.is_alive():
            await self._there(self._close)
            self._loop.call_soon_threadsafe(self._loop.stop)
            await asyncio.to_thread(self._thread.join)
            self._loop.close()

    async def _there(self, work: Callable[[], Any]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def _open(self, status: Status) -> None:
        node = self._node = Node(self._deployment)
        await node.start()
        interface = Interface(node.database, node.cluster.shared)
        runner = self._runner = web.AppRunner(
            application([*status_routes(status), *interface.routes()]), access_log=None, handle_signals=False
        )
        await runner.setup()
        await web.TCPSite(runner, self._host, self.port).start()
        self.port = runner.addresses[0][1]

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._node is not None:
            await self._node.stop()


async def _awaited(status: Status) -> dict[str, Any]:
    return await status()
