"""Where a cluster is: from what the user says to what its processes share.

- a data directory, or the deployment file in it: the way on the cluster's own machines
- host:port of the HTTP interface, for who runs the cluster on this machine; else with the cluster's secret
- zk://host:port,…/root with the cluster's secret, from anywhere that reaches its internal ports
"""

from __future__ import annotations

import os
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from backend.client.status import ask_status, local_deployment
from backend.processes.settings import DEPLOYMENT_FILE, SECRET_VARIABLE, Deployment, status_token
from controller.registry import NotOurs, Registry
from dataflow.errors import Condition, Retryable

TIMEOUT_S = 20.0


def find_deployment(target: str | Path, secret: str | None = None) -> Deployment:
    """Raises Retryable if no cluster is there; ValueError if `target` is none of the forms above."""
    text = str(target)
    secret = secret or os.environ.get(SECRET_VARIABLE)
    if text.startswith("zk://"):
        hosts, _, root = text.removeprefix("zk://").partition("/")
        return _from_zookeeper(hosts, root or "millrace", secret)
    path = Path(text).expanduser()
    if path.exists():
        return _load(path)
    host, _, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not port.isdigit() or "/" in host:
        raise ValueError(f"{text!r} is no data directory, no host:port and no zk://host:port/root")
    return _from_http(host or "127.0.0.1", int(port), secret)


def _load(path: Path) -> Deployment:
    file = path / DEPLOYMENT_FILE if path.is_dir() else path
    try:
        return Deployment.load(file)
    except OSError as error:
        raise Retryable(Condition.UNKNOWN_ERROR, f"no cluster was started in {path}: {error.strerror}") from error


def _from_http(host: str, port: int, secret: str | None) -> Deployment:
    local = local_deployment(port)
    if local is not None and host in ("localhost", "127.0.0.1", "::1", local.host):
        status = _status(host, port, local.status_token)
        if status is not None and (local.zookeeper, local.root) == (status["zookeeper"], status["root"]):
            return local
    if secret is None:
        _status(host, port, None)
        message = f"the secret of {host}:{port} cannot be read here: pass secret=… or set {SECRET_VARIABLE}"
        raise ValueError(message)
    status = _status(host, port, status_token(_secret_bytes(secret)))
    if status is None:
        raise ValueError("the secret is not that of this cluster")
    return _from_zookeeper(status["zookeeper"], status["root"], secret)


def _status(host: str, port: int, token: str | None) -> dict[str, Any] | None:
    """None if the token is not that of the cluster which is there."""
    try:
        return ask_status(f"http://{host}:{port}", token, TIMEOUT_S)
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, HTTPError) and error.code == 401:
            return None
        message = f"no millrace answers over HTTP at {host}:{port} (its --http-port is wanted): {error}"
        raise Retryable(Condition.UNKNOWN_ERROR, message) from error


def _secret_bytes(secret: str) -> bytes:
    try:
        return bytes.fromhex(secret)
    except ValueError:
        raise ValueError("the cluster's secret is hexadecimal, as in the file `secret` of its data directory") from None


def _from_zookeeper(hosts: str, root: str, secret: str | None) -> Deployment:
    if secret is None:
        raise ValueError(f"zk://… needs the cluster's secret: pass secret=… or set {SECRET_VARIABLE}")
    secret_bytes = _secret_bytes(secret)
    try:
        registry = Registry(hosts, root, secret_bytes)
    except ValueError as error:
        raise ValueError(f"{hosts!r} is no host:port of ZooKeeper: {error}") from None
    registry.start(TIMEOUT_S)
    try:
        # As each of them says: some may not be there yet, or not again.
        workers = registry.workers().values()
    except NotOurs:
        raise ValueError("the secret is not that of this cluster") from None
    finally:
        registry.stop()
    shard_count = max([worker.shard_count for worker in workers], default=0)
    if not shard_count:
        raise Retryable(Condition.UNKNOWN_ERROR, f"no workers are registered at {hosts}/{root}")
    return Deployment(
        data="",
        shard_count=shard_count,
        adapter_count=0,
        zookeeper=hosts,
        root=root,
        secret=secret,
        host="",
        internal_host="",
        mysql_port=0,
        durability="",
        memory_bytes=0,
        log_format="json" if any(worker.takes_origins for worker in workers) else "text",
    )
