"""Listening, limits, and the end: all connections of one adapter process.

Several adapters listen on the same port (SO_REUSEPORT); each numbers its connections so that
no two adapters use the same number. Draining lets every connection finish its statement or
transaction, and ends what is left after a grace period.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from backend.execution.memory_account import LIMIT_BYTES
from backend.execution.memory_account import VARIABLE as STATEMENT_MEMORY
from backend.network.tls import Certificate
from backend.worker.session_services import Services
from controller.passwords import DEFAULT_PLUGIN
from controller.sql.planner import PlanCache
from dataflow.errors import Condition, MillraceError
from mysql_adapter.authentication import Authenticator
from mysql_adapter.connection import Connection
from mysql_adapter.database import DatabaseFace
from mysql_adapter.environment import Environment
from mysql_adapter.sessions.abandoned_tables import drop_abandoned
from mysql_adapter.sessions.counts import process_counts
from mysql_adapter.wire.stream import PacketStream

log = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 1.0
CONNECTION_ID_MAX = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Limits:
    connections_max: int = 4096
    packet_bytes_max: int = 64 << 20
    login_timeout_s: float = 10
    write_timeout_s: float = 60.0
    drain_timeout_s: float = 5.0
    statement_memory_bytes: int = LIMIT_BYTES


class Server:
    def __init__(
        self,
        database: DatabaseFace,
        *,
        tls: Certificate | None = None,
        limits: Limits | None = None,
        adapter_number: int = 0,
        adapter_count: int = 1,
        services: Services | None = None,
        plans: PlanCache | None = None,
        password_key: RSAPrivateKey | None = None,
        default_authentication: str = DEFAULT_PLUGIN,
        logs: Path | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.tls = tls
        self.environment = Environment(database, services, plans, adapter_number)
        self.environment.certificate = tls
        if tls is not None:
            self.environment.globals.put("ssl_cert", str(tls.files[0]))
            self.environment.globals.put("ssl_key", str(tls.files[1]))
        self.authenticator = Authenticator(self.environment, password_key)
        self.admission = self.environment.admission
        self.environment.globals.put("max_connections", self.limits.connections_max)
        self.environment.globals.put(STATEMENT_MEMORY, self.limits.statement_memory_bytes)
        self.environment.globals.put("connect_timeout", self.limits.login_timeout_s)
        self.environment.globals.put("max_allowed_packet", self.limits.packet_bytes_max)
        self.environment.globals.put("net_write_timeout", max(1, int(self.limits.write_timeout_s)))
        self.environment.globals.put("default_authentication_plugin", default_authentication)
        if logs is not None:
            self.environment.query_log.write_to(logs)
        self.draining = False
        self.adapter_count = adapter_count
        self._next_id = adapter_number + adapter_count
        self._listeners: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def connections(self) -> dict[int, Connection]:
        return self.environment.connections

    async def listen(self, host: str, port: int) -> int:
        """Start to accept clients; returns the port, which matters where 0 was asked for."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(self._accept, host, port, reuse_port=True, backlog=1024)
        self._listeners.append(listener)
        if self._sweeper is None:
            self._sweeper = loop.create_task(self._sweep())
        bound: int = listener.sockets[0].getsockname()[1]
        self.environment.globals.put("port", bound)
        return bound

    def _accept(self) -> PacketStream:
        number = self._next_id
        self._next_id += self.adapter_count
        if self._next_id > CONNECTION_ID_MAX:
            self._next_id = self._next_id % self.adapter_count + self.adapter_count
        return Connection(self, number).stream

    @property
    def login_timeout_s(self) -> float:
        return float(str(self.environment.globals.get("connect_timeout")))

    def admit(self, connection: Connection) -> MillraceError | None:
        """Why the connection is not greeted, if it is not."""
        if self.draining:
            return MillraceError(Condition.SERVER_SHUTDOWN)
        refusal = self.admission.refuse(connection.stream.host)
        if refusal is None:
            self.connections[connection.id] = connection
            self.admission.enter(connection)
            self._empty.clear()
        return refusal

    def dismiss(self, connection: Connection) -> None:
        if self.connections.get(connection.id) is connection:
            del self.connections[connection.id]
            if not self.connections:
                self._empty.set()

    async def emptied(self) -> None:
        """Wait until no connection is left."""
        await self._empty.wait()

    async def _sweep(self) -> None:
        """End connections that have not logged in or not said anything for too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            now = loop.time()
            for connection in list(self.connections.values()):
                if 0.0 < connection.stream.deadline < now:
                    connection.stream.abort()

    def statistics(self) -> str:
        uptime = int(time.time() - self.environment.started)
        commands = process_counts(self.environment)["Questions"]
        return (
            f"Uptime: {uptime}  Threads: {len(self.connections)}  Questions: {commands}  Slow queries: 0  "
            f"Opens: 0  Flush tables: 0  Open tables: 0  Queries per second avg: {commands / max(uptime, 1):.3f}"
        )

    async def close(self) -> None:
        """Stop accepting, let running work finish, end all connections."""
        self.draining = True
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections.values()):
            connection.stream.ends_with_answer = connection.session is None or not connection.session.in_transaction
            if connection.is_idle:
                connection.stream.close()
        try:
            await asyncio.wait_for(self.emptied(), self.limits.drain_timeout_s)
        except TimeoutError:
            for connection in list(self.connections.values()):
                connection.stream.abort()
            await self.emptied()
        if self._sweeper is not None:
            self._sweeper.cancel()


async def run_adapter(
    server: Server, host: str, port: int, on_listening: Callable[[], Awaitable[None]] | None = None
) -> None:
    """The life of an adapter process: serve until SIGTERM or SIGINT, then drain."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.listen(host, port)
    log.info("listening on %s:%d", host, port)
    environment = server.environment
    tidying = asyncio.ensure_future(drop_abandoned(environment.database, environment.process, server.adapter_count))
    if on_listening is not None:
        await on_listening()
    await stop.wait()
    tidying.cancel()
    await server.close()
