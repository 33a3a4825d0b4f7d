"""Where a cluster is: from what the user says to what its processes share.

- a data directory, or the deployment file in it: the way on the cluster's own machines
- host:port of the HTTP interface, which tells the data directory
- zk://host:port,…/root with the cluster's secret, from anywhere that reaches its internal ports
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from backend.settings import DEPLOYMENT_FILE, Deployment
from controller.registry import Registry
from dataflow.errors import Condition, Retryable

SECRET_VARIABLE = "MILLRACE_SECRET"
TIMEOUT_S = 20.0


def find_deployment(target: str | Path, secret: str | None = None) -> Deployment:
    """Raises Retryable if no cluster is there; ValueError if `target` is none of the forms above."""
    text = str(target)
    if text.startswith("zk://"):
        return _from_zookeeper(text.removeprefix("zk://"), secret or os.environ.get(SECRET_VARIABLE))
    path = Path(text).expanduser()
    if path.exists():
        return _load(path)
    host, _, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not port.isdigit():
        raise ValueError(f"{text!r} is no data directory, no host:port and no zk://host:port/root")
    return _from_http(host or "127.0.0.1", int(port))


def _load(path: Path) -> Deployment:
    file = path / DEPLOYMENT_FILE if path.is_dir() else path
    try:
        return Deployment.load(file)
    except OSError as error:
        raise Retryable(Condition.UNKNOWN_ERROR, f"no cluster was started in {path}: {error.strerror}") from error


def _from_http(host: str, port: int) -> Deployment:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/status", timeout=TIMEOUT_S) as answer:
            data = json.load(answer)["data"]
    except (OSError, HTTPException, ValueError, KeyError) as error:
        message = f"no millrace answers over HTTP at {host}:{port} (its --http-port is wanted): {error}"
        raise Retryable(Condition.UNKNOWN_ERROR, message) from error
    return _load(Path(data))


def _from_zookeeper(place: str, secret: str | None) -> Deployment:
    if secret is None:
        raise ValueError(f"zk://… needs the cluster's secret: pass secret=… or set {SECRET_VARIABLE}")
    try:
        bytes.fromhex(secret)
    except ValueError:
        raise ValueError("the cluster's secret is hexadecimal, as in the file `secret` of its data directory") from None
    hosts, _, root = place.partition("/")
    registry = Registry(hosts, root or "millrace")
    registry.start(TIMEOUT_S)
    try:
        # As each of them says: some may not be there yet, or not again.
        shard_count = max([worker.shard_count for worker in registry.workers().values()], default=0)
    finally:
        registry.stop()
    if not shard_count:
        raise Retryable(Condition.UNKNOWN_ERROR, f"no workers are registered at {place}")
    return Deployment(
        data="",
        shard_count=shard_count,
        adapter_count=0,
        zookeeper=hosts,
        root=root or "millrace",
        secret=secret,
        host="",
        internal_host="",
        mysql_port=0,
        durability="",
        memory_bytes=0,
    )
