"""The HTTP process: joins the cluster, then serves HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import signal

import uvloop

from backend.clustering.node import Node
from backend.http.server import HttpServer
from backend.network.tls import Certificate
from backend.processes.health import Health
from backend.processes.heartbeat import Heartbeat
from backend.processes.records import begin_records
from backend.processes.settings import Deployment


async def _serve(deployment: Deployment) -> None:
    sign = Heartbeat(deployment.secret_bytes, "http")
    node = Node(deployment)
    await node.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)  # before, the signal ends it at once
    health = Health(deployment, node.registry, node.cluster)
    certificate = Certificate(*deployment.tls_files) if deployment.tls_files else None
    if certificate is not None:
        certificate.follow()
    server = HttpServer(deployment.host, deployment.http_port, health.status, node, certificate)
    await server.start()
    sign.follow(deployment.watchdog_s)
    await stop.wait()
    await server.stop()
    await node.stop()


def run(deployment_path: str) -> None:
    deployment = Deployment.load(deployment_path)
    begin_records(deployment, "http")
    uvloop.run(_serve(deployment))
