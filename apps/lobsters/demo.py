"""`make demo`: millrace with the site of Lobsters, visitors, and a front end; the same on MariaDB beside it, if that is installed.

The data is in ./millrace-demo (--data), and stays there; visitors begin again where it is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pymysql

from apps.lobsters.plain_connection import PlainConnection
from apps.lobsters.site import build_site

DATABASE = "lobsters"
READY = re.compile(r"millrace ready  mysql://root@[\d.]+:(\d+)  (\S+)")
START_S = 60.0


class Demo:
    """Its processes end with it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._processes: list[subprocess.Popen[str]] = []
        self._mariadb_folder: Path | None = None

    def run(self) -> int:
        options = self._options
        mysql_port, page = self._millrace()
        self._build(mysql_port, False)
        beside = self._mariadb() if options.mariadb else None
        web_port = str(options.web_port)
        site = self._start("apps.lobsters.web", str(mysql_port), DATABASE, *([str(beside)] if beside else []), environment={"WEB_PORT": web_port})
        assert site.stdout is not None
        address = site.stdout.readline().strip()
        self._start("apps.lobsters.traffic", str(mysql_port), DATABASE, str(options.scale), str(options.rate))
        say(f"the site         {address}" + (f"     beside MariaDB: {address}/beside" if beside else ""))
        say(f"the page         {page}     log in as root, without a password")
        say(f"MySQL            mysql -h 127.0.0.1 -P {mysql_port} -u root {DATABASE}")
        say(f"visitors ask for {options.rate:g} pages a second. Ctrl-C ends it all.")
        while all(each.poll() is None for each in self._processes):
            time.sleep(0.3)
        return 1

    def _millrace(self) -> tuple[int, str]:
        options = self._options
        command = [f"--data={options.data}", f"--mysql-port={options.mysql_port}", f"--http-port={options.http_port}", "--controllers=1"]
        process = self._start("backend.cli", "serve", *command)
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            found = READY.search(line)
            if found is not None:
                return int(found[1]), found[2]
        raise SystemExit("millrace did not start")

    def _build(self, port: int, mariadb: bool) -> None:
        """The site, unless it is there."""
        name = "MariaDB" if mariadb else "millrace"
        with closing(PlainConnection("127.0.0.1", port)) as connection:
            if connection.query(f"SHOW DATABASES LIKE '{DATABASE}'").rows:
                return
            for line in build_site(connection, DATABASE, "natural", self._options.scale, 0, mariadb):
                say(f"{name}: {line}")

    def _mariadb(self) -> int | None:
        """A server of its own, in a folder that goes with it."""
        path = os.environ["PATH"] + ":/usr/sbin"
        server, install = shutil.which("mariadbd", path=path), shutil.which("mariadb-install-db", path=path)
        if server is None or install is None:
            return None
        folder = self._mariadb_folder = Path(tempfile.mkdtemp(prefix="millrace-demo-"))
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run([install, f"--datadir={folder}", "--auth-root-authentication-method=normal", "--skip-test-db", *user], check=True, capture_output=True)
        port = self._options.mariadb_port
        options = ["--no-defaults", f"--datadir={folder}", f"--port={port}", f"--socket={folder}/socket", "--bind-address=127.0.0.1", *user]
        self._processes.append(subprocess.Popen([server, *options], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        give_up = time.monotonic() + START_S
        while True:
            with contextlib.suppress(pymysql.err.OperationalError):
                PlainConnection("127.0.0.1", port).close()
                break
            if time.monotonic() > give_up:
                raise SystemExit("MariaDB did not start; --no-mariadb leaves it out")
            time.sleep(0.3)
        self._build(port, True)
        return int(port)

    def _start(self, module: str, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], text=True, stdout=subprocess.PIPE, stderr=None, start_new_session=True,
            env=os.environ | (environment or {}),
        )  # fmt: skip
        self._processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGINT if process is self._processes[0] else signal.SIGTERM)
        for process in self._processes:
            process.wait(30)
        if self._mariadb_folder is not None:
            shutil.rmtree(self._mariadb_folder, ignore_errors=True)


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--data", default="./millrace-demo")
    parser.add_argument("--scale", type=float, default=0.02, help="1 is the site of 2018: 9,200 users, 40,650 stories")
    parser.add_argument("--rate", type=float, default=20.0, help="pages a second")
    parser.add_argument("--mysql-port", type=int, default=3307)
    parser.add_argument("--http-port", type=int, default=6033)
    parser.add_argument("--web-port", type=int, default=8080)
    parser.add_argument("--mariadb-port", type=int, default=3308)
    parser.add_argument("--no-mariadb", dest="mariadb", action="store_false", help="leave MariaDB out, even if it is installed")
    demo = Demo(parser.parse_args())
    for each in (signal.SIGINT, signal.SIGTERM):  # a process that a script starts in the background ignores SIGINT otherwise
        signal.signal(each, lambda *_: sys.exit(0))
    try:
        return demo.run()
    finally:
        demo.stop()


if __name__ == "__main__":
    sys.exit(main())
