"""Listening for HTTP."""

from __future__ import annotations

from aiohttp import web

from backend.http.answers import REQUEST_BYTES_MAX, errors_as_json
from backend.http.description import description
from backend.http.interface import Interface
from backend.http.status import Status, status_routes
from backend.node import Node
from backend.tls import Certificate


def application(routes: list[web.RouteDef]) -> web.Application:
    found = web.Application(middlewares=[errors_as_json], client_max_size=REQUEST_BYTES_MAX)

    async def show_description(request: web.Request) -> web.Response:
        return web.json_response(description())

    async def show_index(request: web.Request) -> web.Response:
        return web.json_response({"paths": ["/status", "/health", "/metrics", "/openapi.json"]})

    found.add_routes([web.get("/", show_index), web.get("/openapi.json", show_description), *routes])
    return found


class HttpServer:
    """From `start` to `stop`."""

    def __init__(
        self, host: str, port: int, status: Status, node: Node, certificate: Certificate | None = None
    ) -> None:
        """HTTPS with a certificate, HTTP without."""
        self._host = host
        self._tls = certificate.listening_context() if certificate is not None else None
        self._port = port
        interface = Interface(node.database, node.cluster.shared)
        self._runner = web.AppRunner(
            application([*status_routes(status, interface.callers, node.deployment.status_token), *interface.routes()]), access_log=None, handle_signals=False
        )

    async def start(self) -> None:
        """The supervisor holds the port, so that nobody else gets it between two of these."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, reuse_port=True, ssl_context=self._tls).start()

    async def stop(self) -> None:
        await self._runner.cleanup()
