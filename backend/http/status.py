"""The cluster's status over HTTP: JSON for people and tools, Prometheus text for monitoring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Status = Callable[[], Awaitable[dict[str, Any]]]

_SHARD_METRICS = {
    "epoch": "the last applied epoch",
    "transactions": "transactions answered since the worker started",
    "reads": "read requests since the worker started",
    "open_scans": "scans that somebody is reading",
    "views": "queries that are maintained",
    "view_bytes": "memory of the maintained queries",
    "stored_bytes": "bytes on disk",
    "resident_bytes": "memory of the worker process",
    "longest_hold_ms": "processor time of the longest moment in which the worker answered nobody",
}


def status_routes(status: Status) -> list[web.RouteDef]:
    """/status, /health and /metrics."""

    async def show_status(request: web.Request) -> web.Response:
        return web.json_response(await status())

    async def show_health(request: web.Request) -> web.Response:
        found = await status()
        if found["ready"]:
            return web.json_response({"ready": True})
        return web.json_response({"ready": False, "reason": "; ".join(found["problems"])}, status=503)

    async def show_metrics(request: web.Request) -> web.Response:
        return web.Response(text=metrics(await status()), content_type="text/plain")

    return [
        web.get("/status", show_status),
        web.get("/health", show_health),
        web.get("/metrics", show_metrics),
    ]


def metrics(status: dict[str, Any]) -> str:
    """The status in Prometheus' text format."""
    lines = ["# HELP millrace_ready whether clients can connect", f"millrace_ready {int(status['ready'])}"]
    for name, meaning in _SHARD_METRICS.items():
        lines.append(f"# HELP millrace_shard_{name} {meaning}")
        for shard in status["shards"]:
            if name in shard:
                lines.append(f'millrace_shard_{name}{{shard="{shard["shard"]}"}} {shard[name]}')
    lines.append("# HELP millrace_process_restarts how often a process had to be started again")
    for process in status["processes"]:
        lines.append(f'millrace_process_restarts{{process="{process["name"]}"}} {process["restarts"]}')
    return "\n".join(lines) + "\n"
