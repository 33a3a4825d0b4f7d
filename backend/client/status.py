"""The status of a cluster, asked over HTTP with what shows that one may see all of it.

Who runs the cluster on this machine needs nothing for that: the process that serves the port is theirs, so they can read its
deployment. From anywhere else it takes the cluster's secret.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psutil

from backend.processes.settings import SECRET_VARIABLE, Deployment, status_token

TITLE = "millrace http "
"""How the title of an HTTP process begins; the rest is the path of its deployment."""


def local_deployment(port: int) -> Deployment | None:
    """That of the cluster of this user that serves HTTP on `port` of this machine."""
    for process in psutil.process_iter(["uids", "cmdline"]):
        command, users = " ".join(process.info["cmdline"] or []), process.info["uids"]
        if command.startswith(TITLE) and users is not None and users.effective == os.geteuid():
            try:
                found = Deployment.load(command.removeprefix(TITLE).rstrip())
            except (OSError, msgspec.DecodeError):
                continue
            if found.http_port == port:
                return found
    return None


def token_for(url: str) -> tuple[str | None, Deployment | None]:
    """What shows that one may see all: of MILLRACE_SECRET, or of the own cluster that serves `url` on this machine."""
    local = local_deployment(urlsplit(url).port or 0)
    secret = os.environ.get(SECRET_VARIABLE) or (local.secret if local is not None else None)
    return (status_token(bytes.fromhex(secret)) if secret else None), local


def ask(url: str, token: str | None, timeout_s: float) -> bytes:
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        found: bytes = answer.read()
    return found


def ask_status(url: str, token: str | None, timeout_s: float) -> dict[str, Any]:
    """`url` is that of the HTTP interface. Raises OSError, HTTPException or ValueError if no cluster answers there.

    Without a token the answer is that for strangers; with a wrong one there is HTTPError 401.
    """
    found = json.loads(ask(f"{url}/status", token, timeout_s))
    if not isinstance(found, dict) or "ready" not in found:
        raise ValueError("that is something else")
    return found
