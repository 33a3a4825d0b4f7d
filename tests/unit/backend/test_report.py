"""A report has logs and settings, and no secrets, also of a cluster that does not run."""

from __future__ import annotations

import zipfile
from pathlib import Path

from backend.commands.report import write_report
from backend.processes.settings import DEPLOYMENT_FILE, SECRET_FILE

SECRET = "5e" * 32


def test_secrets_are_left_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "logs").mkdir(parents=True)
    (data / SECRET_FILE).write_text(SECRET)
    (data / "logs" / "worker-0.log").write_text(f"started with {SECRET}\nfailed: CREATE USER u IDENTIFIED BY 'hunter2'\nview is full\n")
    (data / "logs" / "general.log").write_text("SELECT 'private'")
    assert not (data / DEPLOYMENT_FILE).exists()
    said = list(write_report("http://127.0.0.1:1", tmp_path / "report.zip", data))
    with zipfile.ZipFile(tmp_path / "report.zip") as found:
        everything = b"".join(found.read(name) for name in found.namelist())
        assert {"machine.json", "packages.txt", "logs/worker-0.log", "http/metrics"} <= set(found.namelist())
    assert b"view is full" in everything and b"no answer" in everything and "report.zip" in said[0]
    assert SECRET.encode() not in everything and b"hunter2" not in everything and b"private" not in everything
