"""The cluster's status over HTTP: JSON for people and tools."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from backend.http.authentication import Callers

Status = Callable[[], Awaitable[dict[str, Any]]]

async def is_operator(request: web.Request, callers: Callers, token: str) -> bool:
    """Whether all may be shown to who asks: the account has the privilege PROCESS, or the cluster's token is given."""
    given = request.headers.get("Authorization")
    if given is None:
        return False
    if hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return True
    return (await callers.identify(request, None)).rights.has_any("PROCESS")


def status_routes(status: Status, callers: Callers, token: str) -> list[web.RouteDef]:
    """/status and /health.

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

    return [
        web.get("/status", show_status),
        web.get("/health", show_health),
    ]

