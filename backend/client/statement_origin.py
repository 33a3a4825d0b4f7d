"""The name of each statement of the client library, `client.HOST.PROCESS.N`, for logs and traces of all processes (see `backend.network.origin`),
and for the page, which shows it with slow statements and with the last execution of a query.

A statement of a request over HTTP keeps the name of the request. Lookups that shared memory answers have no name.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from backend.network.attributed_peer import tell_origins
from backend.network.origin import Origin, current, observers
from backend.processes.settings import Deployment

_host = socket.gethostname()
_numbers = count(1)


def follow_cluster(deployment: Deployment) -> None:
    """Have connections tell origins if this cluster takes them. To be called before the process connects to the cluster.

    Connections to other clusters stay as they are: what is sent from a statement of theirs has no origin.
    """
    if deployment.takes_origins and not observers.is_told:
        tell_origins(None)


@contextmanager
def named_statement(is_told: bool) -> Iterator[str]:
    """The name of the statement that is run in the block; the cluster `is_told` it with each request."""
    origin = current.get()
    if origin is not None:
        yield origin.statement
        return
    name = f"client.{_host}.{os.getpid()}.{next(_numbers)}"
    if not is_told:
        yield name
        return
    before = current.set(Origin(name, _application_trace()))
    try:
        yield name
    finally:
        current.reset(before)  # the application's next statement has the same context


def _application_trace() -> str:
    """The traceparent of the application's span, if the application uses OpenTelemetry and is in one."""
    api: Any = sys.modules.get("opentelemetry.trace")
    if api is None:
        return ""
    context = api.get_current_span().get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}" if context.is_valid else ""
