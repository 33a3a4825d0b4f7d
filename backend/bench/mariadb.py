"""A MariaDB server to measure against: its own data directory, on the disk that we use too."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql

START_TIMEOUT_S = 60.0


@contextmanager
def mariadb(folder: Path, *options: str) -> Iterator[int | None]:
    """The port of a durable server (innodb_flush_log_at_trx_commit=1); None if it is not installed."""
    server = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    install = shutil.which("mariadb-install-db")
    if server is None or install is None:
        yield None
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    flags = [f"--datadir={folder / 'data'}", *(["--user=root"] if os.geteuid() == 0 else [])]
    subprocess.run(
        [install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", *flags],
        check=True,
        capture_output=True,
    )
    command = [server, "--no-defaults", *flags, "--bind-address=127.0.0.1", f"--port={port}"]
    command += [f"--socket={folder / 'm.sock'}", f"--pid-file={folder / 'm.pid'}", "--skip-log-bin"]
    command += [
        "--innodb-flush-log-at-trx-commit=1",
        "--innodb-buffer-pool-size=1G",
        "--max-allowed-packet=64M",
    ]
    command += ["--innodb-log-file-size=512M", "--performance-schema=OFF", "--max-connections=500", *options]
    with (folder / "mariadb.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            connect(port).close()
            return
        except pymysql.err.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("mariadbd did not start") from None
            time.sleep(0.05)


def connect(port: int, database: str | None = None) -> pymysql.Connection[Any]:
    return pymysql.connect(
        host="127.0.0.1", port=port, user="root", database=database, autocommit=True, ssl_disabled=True
    )
