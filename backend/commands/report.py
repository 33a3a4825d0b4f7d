"""`millrace report`: a support bundle in one file. It holds no rows and no secrets.

Only the settings named here are written. The cluster's secret, and passwords in statements, are removed from logs.
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Iterator
from http.client import HTTPException
from importlib.metadata import distributions
from pathlib import Path

import psutil

from backend.client.status import ask, token_for
from backend.processes import interpreter
from backend.processes.process_log import without_secrets
from backend.processes.settings import DEPLOYMENT_FILE, SECRET_FILE, Deployment

SETTINGS = (
    "shard_count", "adapter_count", "controller_count", "memory_bytes", "statement_memory_bytes", "spark_rows", "durability", "idle_view_s", "watchdog_s",
    "host", "internal_host", "mysql_port", "http_port", "master", "default_authentication",
)  # fmt: skip
PATHS = ("/status", "/health", "/metrics", "/v1/overview", "/v1/graph", "/v1/queries", "/v1/transitions")
LOG_BYTES_MAX = 2_000_000
"""The end of each log."""
LOGS_LEFT_OUT = frozenset({"general.log", "slow.log"})
"""They have statements with their values."""
TIMEOUT_S = 20.0


def write_report(http: str, output: Path, data: Path | None) -> Iterator[str]:
    """Writes the file, and says what is in it."""
    token, deployment = token_for(http)
    if data is not None and (data / DEPLOYMENT_FILE).exists():
        deployment = Deployment.load(data / DEPLOYMENT_FILE)
        http, token = deployment.http_address, deployment.status_token  # another cluster may be at the default address
    folder = data or (deployment.data_path if deployment is not None else None)
    secrets = _secrets(folder, deployment)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as found:
        found.writestr("machine.json", json.dumps(_machine(), indent=1))
        found.writestr("packages.txt", "".join(sorted(f"{each.name}=={each.version}\n" for each in distributions())))
        if deployment is not None:
            known = {name: getattr(deployment, name) for name in SETTINGS if hasattr(deployment, name)}
            found.writestr("settings.json", json.dumps(known, indent=1))
        for path in PATHS:
            try:
                content = ask(http + path, token, TIMEOUT_S)
            except (OSError, HTTPException) as error:
                content = f"no answer: {error}".encode()
            found.writestr("http" + path, _without(content, secrets))
        for log in sorted((folder / "logs").glob("*")) if folder is not None else []:
            if log.is_file() and log.name not in LOGS_LEFT_OUT:
                lines = log.read_bytes()[-LOG_BYTES_MAX:].decode(errors="replace").splitlines()
                shown = "\n".join(map(without_secrets, lines)).encode()
                found.writestr(f"logs/{log.name}", _without(shown, secrets))
        names = found.namelist()
    yield f"{output}: {len(names)} files, {output.stat().st_size / 1e3:,.0f} kB"
    yield from (f"  {name}" for name in names)


def _machine() -> dict[str, object]:
    return {
        "system": platform.platform(),
        "python": interpreter.description(),
        "processors": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "free_memory_bytes": psutil.virtual_memory().available,
    }


def _secrets(folder: Path | None, deployment: Deployment | None) -> list[bytes]:
    """What must not be told: the cluster's secret, and what is derived from it and known here."""
    found = [] if deployment is None else [deployment.secret.encode(), deployment.status_token.encode()]
    if folder is not None and (folder / SECRET_FILE).exists():
        found.append((folder / SECRET_FILE).read_bytes().strip())
    return [each for each in found if each]


def _without(content: bytes, secrets: list[bytes]) -> bytes:
    for each in secrets:
        content = content.replace(each, b"<secret>")
    return content
