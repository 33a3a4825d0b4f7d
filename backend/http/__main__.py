"""The HTTP process: joins the cluster, then serves HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys

import uvloop

from backend.health import Health
from backend.heartbeat import Heartbeat
from backend.http.server import HttpServer
from backend.node import Node
from backend.process_log import configure_logging
from backend.settings import Deployment
from backend.tls import Certificate


async def main(deployment: Deployment) -> None:
    sign = Heartbeat(deployment.secret_bytes, "http")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    node = Node(deployment)
    await node.start()
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


if __name__ == "__main__":
    deployment = Deployment.load(sys.argv[1])
    configure_logging(deployment.data_path / "logs" / "http.log")
    uvloop.run(main(deployment))
