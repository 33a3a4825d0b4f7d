"""The records of a process of the cluster: its log, and, if they are on, origins and traces."""

from __future__ import annotations

from importlib.metadata import version

from backend.processes.process_log import configure_logging
from backend.processes.settings import Deployment


def begin_records(deployment: Deployment, process: str) -> None:
    """To be called once, before the process connects to others."""
    configure_logging(deployment.data_path / "logs" / f"{process}.log", deployment.log_format)
    if not deployment.takes_origins:
        return
    from backend.network.attributed_peer import tell_origins

    if deployment.trace_endpoint:
        from backend.processes.tracing import begin_spans  # an optional dependency

        tell_origins(begin_spans(deployment.trace_endpoint, process, version("millrace")))
    else:
        tell_origins(None)
