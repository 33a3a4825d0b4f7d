"""The adapter process: joins the cluster, then speaks MySQL until it is told to stop."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import tempfile
from pathlib import Path

import uvloop

from backend.heartbeat import Heartbeat
from backend.node import Node
from backend.session_services import ClusterServices
from backend.settings import Deployment, write_private
from backend.worker_process import configure_logging
from controller.registry import Address
from mysql_adapter.server import Server, run_adapter
from mysql_adapter.tls import create_certificate, private_key, server_context

log = logging.getLogger(__name__)


async def main(number: int, deployment: Deployment) -> None:
    Heartbeat(deployment.secret_bytes, f"adapter-{number}").follow(deployment.watchdog_s)
    node = Node(deployment)
    await node.start()
    certificate = certificate_of(deployment.data_path / "tls")

    async def listening() -> None:
        address = Address(deployment.host, deployment.mysql_port, os.getpid())
        await node.register_adapter(str(number), address)

    services = ClusterServices(node.cluster) if deployment.adapter_count > 1 else None
    gc.freeze()
    server = Server(
        node.database,
        tls=server_context(certificate, certificate),
        password_key=private_key(certificate),
        adapter_number=number,
        adapter_count=deployment.adapter_count,
        services=services,
        default_authentication=deployment.default_authentication,
    )
    await run_adapter(server, deployment.host, deployment.mysql_port, listening)
    if services is not None:
        services.close()
    await node.stop()


def certificate_of(folder: Path) -> Path:
    """The server's certificate and its key, in one file that never changes, made by the first adapter that starts."""
    path = folder / "server.pem"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as own:
            certificate, key, both = (Path(own) / name for name in ("certificate", "key", "both"))
            create_certificate(certificate, key)
            write_private(both, key.read_bytes() + certificate.read_bytes())
            with contextlib.suppress(FileExistsError):  # another was faster
                os.link(both, path)
    return path


if __name__ == "__main__":
    deployment = Deployment.load(sys.argv[2])
    configure_logging(deployment.data_path / "logs" / f"adapter-{sys.argv[1]}.log")
    uvloop.run(main(int(sys.argv[1]), deployment))
