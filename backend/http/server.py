"""Listening for HTTP."""

from __future__ import annotations

from aiohttp import web

from backend.clustering.node import Node
from backend.http.answers import REQUEST_BYTES_MAX, errors_as_json
from backend.http.connections import HttpConnections
from backend.http.description import description
from backend.http.interface import Interface
from backend.http.observation import Observation
from backend.http.page_files import PageFiles
from backend.http.request_origin import named_requests
from backend.http.status import Status, status_routes
from backend.http.twins import Twins
from backend.network.tls import Certificate


def application(routes: list[web.RouteDef], connections: HttpConnections) -> web.Application:
    files = PageFiles()
    middlewares = [connections.middleware(), named_requests, errors_as_json]
    found = web.Application(middlewares=middlewares, client_max_size=REQUEST_BYTES_MAX)

    async def show_description(request: web.Request) -> web.Response:
        return web.json_response(description())

    async def show_index(request: web.Request) -> web.Response:
        """The page, to who asks for HTML."""
        if "text/html" in request.headers.get("Accept", ""):
            return files.file(request, "index.html")
        return web.json_response({"paths": ["/status", "/health", "/metrics", "/openapi.json"]})

    found.add_routes([web.get("/", show_index), web.get("/openapi.json", show_description), *files.routes(), *routes])
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
        self._connections = HttpConnections()
        self._interface = interface = Interface(node.database, node.cluster.shared, node.deployment.statement_memory_bytes)
        self._observation = Observation(node.cluster, node.deployment.shard_count, interface.counts, node.database)
        token = node.deployment.status_token
        twins = Twins(self._observation, status, node.database, interface.callers, token, node.deployment.shard_memory_bytes)
        routes = [*status_routes(status, interface.callers, token), *interface.routes(), *twins.routes(), web.get("/metrics", twins.metrics)]
        self._runner = web.AppRunner(application(routes, self._connections), access_log=None, handle_signals=False)

    async def start(self) -> None:
        """The supervisor holds the port, so that nobody else gets it between two of these."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, reuse_port=True, ssl_context=self._tls).start()
        assert self._runner.server is not None
        self._connections.watch(self._runner.server)
        self._observation.start()

    async def stop(self) -> None:
        self._connections.stop()
        self._observation.stop()
        self._interface.events.stop()
        await self._runner.cleanup()
