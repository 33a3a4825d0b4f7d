"""The cluster's status over HTTP: JSON for people and tools, Prometheus text for monitoring."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from backend.http.authentication import Callers

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


async def is_operator(request: web.Request, callers: Callers, token: str) -> bool:
    """Whether all may be shown to who asks: the account has the privilege PROCESS, or the cluster's token is given."""
    given = request.headers.get("Authorization")
    if given is None:
        return False
    if hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return True
    return (await callers.identify(request, None)).rights.has_any("PROCESS")


def status_routes(status: Status, callers: Callers, token: str) -> list[web.RouteDef]:
    """/status, /health and /metrics.

    All that is told to strangers is whether clients can connect. Addresses, paths and processes are for who has the cluster's
    secret (`token` is made of it), and for accounts with the privilege PROCESS.
    """

    async def sees_all(request: web.Request) -> bool:
        return await is_operator(request, callers, token)

    async def show_status(request: web.Request) -> web.Response:
        shows_all, found = await sees_all(request), await status()
        return web.json_response(found if shows_all else {"ready": found["ready"]})

    async def show_health(request: web.Request) -> web.Response:
        shows_all, found = await sees_all(request), await status()
        reason = {"reason": "; ".join(found["problems"])} if shows_all and not found["ready"] else {}
        return web.json_response({"ready": found["ready"], **reason}, status=200 if found["ready"] else 503)

    async def show_metrics(request: web.Request) -> web.Response:
        shows_all, found = await sees_all(request), await status()
        shown = metrics(found if shows_all else {"ready": found["ready"], "shards": [], "processes": []})
        return web.Response(text=shown, content_type="text/plain")

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
