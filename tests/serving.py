"""A real `millrace serve` for tests: the command itself, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pymysql

from backend.processes.settings import DEPLOYMENT_FILE, Deployment

READY = re.compile(r"millrace ready  mysql://root@([\d.]+):(\d+)  (https?)://[\d.]+:(\d+)")
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 20.0


class MillraceServer:
    """A running cluster, from the constructor until `stop` or `kill`."""

    def __init__(
        self,
        data: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
        within: tuple[str, ...] = (),
        python: str = sys.executable,
    ) -> None:
        """`within` is a command that executes the one that follows it, in its own process; `python` has millrace installed."""
        self.data = data
        self.output: list[str] = []
        # As the command `millrace`, which does not look for modules in the current folder.
        command = [*within, python, "-P", "-m", "backend.cli", "serve", f"--data={data}", "--mysql-port=0", "--http-port=0"]
        command += ["--controllers=1", *options]  # a second one takes a second to start
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=os.environ | (environment or {}),
            cwd=folder,
        )
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ready.wait(START_TIMEOUT_S)
        found = READY.search("".join(self.output))
        if found is None:
            self.kill()
            raise RuntimeError(f"millrace did not start:\n{''.join(self.output)}\n{self.logs()}")
        self.host, self.mysql_port, self.http_port = found[1], int(found[2]), int(found[4])
        self.http_address = f"{found[3]}://{self.host}:{self.http_port}"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            if READY.search(line):
                self._ready.set()
        self._ready.set()

    def connect(self, database: str | None = None, **options: Any) -> pymysql.connections.Connection[Any]:
        """A PyMySQL connection in autocommit mode."""
        options = {"charset": "utf8mb4", "autocommit": True, "user": "root", "password": ""} | options
        return pymysql.connect(host=self.host, port=self.mysql_port, database=database, **options)

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.request("/status"), timeout=20) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def request(self, path: str) -> urllib.request.Request:
        """Over HTTP, as who knows the cluster's secret."""
        headers = {"Authorization": f"Bearer {self.deployment().status_token}"}
        return urllib.request.Request(f"{self.http_address}{path}", headers=headers)

    def deployment(self) -> Deployment:
        return Deployment.load(self.data / DEPLOYMENT_FILE)

    def processes(self) -> list[psutil.Process]:
        """Every process of the cluster but the supervisor."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """kill -9 of the whole tree at once, as a power cut would end it."""
        if self.process.poll() is None:
            victims = [*self.processes(), psutil.Process(self.process.pid)]
            for act in (psutil.Process.suspend, psutil.Process.kill):
                for victim in victims:
                    with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself, or with its parent
                        act(victim)
            self.process.wait()
            psutil.wait_procs(victims, timeout=10)

    def logs(self) -> str:
        """The end of every log, for the report of a failed test."""
        parts = []
        for path in sorted((self.data / "logs").glob("*")) if (self.data / "logs").exists() else []:
            parts.append(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}")
        return "\n".join(parts)
