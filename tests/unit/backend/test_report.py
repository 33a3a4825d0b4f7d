"""A report has logs and settings, and no secrets, also of a cluster that does not run."""

from __future__ import annotations

import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from backend.commands.report import write_report
from backend.processes.settings import DEPLOYMENT_FILE, SECRET_FILE, Deployment, status_token

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


class Status(BaseHTTPRequestHandler):
    """Answers who has the token of `SECRET`."""

    def do_GET(self) -> None:
        is_known = self.headers["Authorization"] == f"Bearer {status_token(bytes.fromhex(SECRET))}"
        self.send_response(200 if is_known else 401)
        self.end_headers()
        self.wfile.write(b"its own figures")

    def log_message(self, format: str, *arguments: object) -> None: ...


def test_the_cluster_of_a_data_directory_is_asked_wherever_it_listens(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Status) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        data = tmp_path / "data"
        Deployment(str(data), 1, 1, "", "", SECRET, "127.0.0.1", "", 0, "", 0, http_port=server.server_port).save()
        list(write_report("http://127.0.0.1:1", tmp_path / "report.zip", data))
        server.shutdown()
    with zipfile.ZipFile(tmp_path / "report.zip") as found:
        assert found.read("http/metrics") == b"its own figures"
        assert f'"http_port": {server.server_port}' in found.read("settings.json").decode()
