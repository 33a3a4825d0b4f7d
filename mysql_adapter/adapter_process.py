"""The adapter process: joins the cluster, then speaks MySQL until it is told to stop."""

from __future__ import annotations

import gc
import logging
import os

import uvloop

from backend.clustering.node import Node
from backend.network.tls import Certificate, own_certificate, private_key
from backend.processes.heartbeat import Heartbeat
from backend.processes.records import begin_records
from backend.processes.settings import Deployment
from backend.worker.session_services import ClusterServices, LocalServices
from controller.registry import Address
from controller.sql.text.depth import make_room
from mysql_adapter.server import Limits, Server, run_adapter

GARBAGE_THRESHOLDS = (50_000, 10, 10)
"""Statements make many objects and hardly any circles; what the caches keep would be looked at again and again."""

log = logging.getLogger(__name__)


async def _serve(number: int, deployment: Deployment) -> None:
    Heartbeat(deployment.secret_bytes, f"adapter-{number}").follow(deployment.watchdog_s)
    node = Node(deployment)
    await node.start()
    own = own_certificate(deployment.data_path / "tls")
    given = deployment.tls_files
    certificate = Certificate(*given) if given else Certificate(own, own)
    certificate.follow()

    async def listening() -> None:
        address = Address(deployment.host, deployment.mysql_port, os.getpid())
        await node.register_adapter(str(number), address)

    joined = ClusterServices(node.cluster)
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    server = Server(
        node.database,
        tls=certificate,
        limits=Limits(statement_memory_bytes=deployment.statement_memory_bytes),
        password_key=private_key(own),
        adapter_number=number,
        adapter_count=deployment.adapter_count,
        services=joined if deployment.adapter_count > 1 else LocalServices(joined),
        default_authentication=deployment.default_authentication,
        logs=deployment.data_path / "logs",
    )
    await run_adapter(server, deployment.host, deployment.mysql_port, listening)
    joined.close()
    await node.stop()


def run(number: str, deployment_path: str) -> None:
    deployment = Deployment.load(deployment_path)
    begin_records(deployment, f"adapter-{number}")
    make_room()
    uvloop.run(_serve(int(number), deployment))
