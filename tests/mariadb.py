"""A real MariaDB server for the tests: the oracle that answers are compared with.

Each test process has at most one, on a free port, with a data directory of its own. It is
tuned to start fast, not to be durable, and it dies with the process that started it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql

START_SECONDS_MAX = 60.0
MISSING = (
    "mariadbd is not installed; the tests compare with it. "
    "Install the Debian packages mariadb-server-core and mariadb-client-core, or run `make setup` as root."
)
SQL_MODE = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""MySQL 8's default, so that both refuse the same values."""


class MariaDB:
    """A running server. Root has no password. Use it as a context manager, or call `stop`."""

    host = "127.0.0.1"

    def __init__(self, folder: Path, *options: str) -> None:
        server = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        install = shutil.which("mariadb-install-db")
        if server is None or install is None:
            raise RuntimeError(MISSING)
        self.folder = folder
        self.port = free_port()
        self._names = itertools.count(1)
        data = folder / "data"
        flags = [
            f"--datadir={data}",
            "--innodb-log-file-size=4M",
            *(["--user=root"] if os.geteuid() == 0 else []),
        ]
        subprocess.run(
            [install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", *flags],
            check=True, capture_output=True, timeout=START_SECONDS_MAX,
        )  # fmt: skip
        self._log = folder / "mariadb.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    server, "--no-defaults", *flags,
                    f"--bind-address={self.host}", f"--port={self.port}", f"--socket={folder / 'mariadb.sock'}",
                    f"--pid-file={folder / 'mariadb.pid'}", "--skip-name-resolve", "--skip-log-bin",
                    "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
                    "--default-time-zone=+00:00", f"--sql-mode={SQL_MODE}",
                    "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
                    "--innodb-flush-method=nosync", "--skip-innodb-doublewrite", "--performance-schema=OFF",
                    "--max-connections=200", "--max-allowed-packet=64M", *options,
                ],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent,
            )  # fmt: skip
        self._wait_until_ready()

    def connect(self, database: str | None = None, **options: Any) -> pymysql.connections.Connection[Any]:
        """A PyMySQL connection in autocommit mode."""
        options = {"charset": "utf8mb4", "autocommit": True, "user": "root", "password": ""} | options
        return pymysql.connect(host=self.host, port=self.port, database=database, **options)

    def fresh_database(self) -> str:
        """The name of a new, empty database."""
        name = f"test_{next(self._names)}"
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return name

    def stop(self) -> None:
        self._process.kill()  # nothing in it is worth an orderly shutdown
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> MariaDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                self.connect(connect_timeout=5).close()
                return
            except pymysql.err.OperationalError:
                try:
                    self._process.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
                break
        self._process.kill()
        self._process.wait()
        raise RuntimeError(f"mariadbd did not start:\n{self._log.read_text(errors='replace')[-3000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((MariaDB.host, 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    """So that no server is left behind when a test run is killed (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
