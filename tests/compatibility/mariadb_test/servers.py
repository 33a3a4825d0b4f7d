"""The two servers: a MariaDB that is cleaned between files, and a millrace of the same kind or a fresh one.

With one worker millrace is the whole engine in a process of its own, made for each file by a fork, which
costs less than cleaning. With several it is a real cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

import uvloop

from backend.execution.embedded import open_embedded
from backend.shared_memory.segment import FOLDER, SegmentNames
from mysql_adapter.server import Server
from tests.compatibility.mariadb_test.lines import Address, Line
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""What the files are written for; MySQL's default has ONLY_FULL_GROUP_BY besides."""
ROUNDING = "SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')"
"""MySQL rounds fractions of a second, MariaDB cuts them unless told so."""
MODES_OF_MARIADB = frozenset({
    "TIME_ROUND_FRACTIONAL", "EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT", "IGNORE_BAD_TABLE_OPTIONS", "NO_AUTO_CREATE_USER",
    "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB", "MYSQL323", "MYSQL40",
})  # fmt: skip
MOMENT = "SET timestamp = 1700000000"
NAMES = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
OWN_DATABASES = frozenset({b"mysql", b"information_schema", b"performance_schema", b"sys", b"millrace"})
OWN_USERS = frozenset({b"root", b"mariadb.sys", b"mysql", b"PUBLIC"})
START_TIMEOUT_S = 60.0


class Oracle:
    """MariaDB, one for many files."""

    def __init__(self) -> None:
        # In memory: every definition waits for the disk else. The path of a Unix socket may only have 107 characters.
        memory = Path("/dev/shm")
        folder = Path(tempfile.mkdtemp(prefix="millrace-oracle-", dir=memory if memory.exists() else None))
        self._server = MariaDB(
            folder, f"--sql-mode={SQL_MODE}", "--local-infile=1", "--lock-wait-timeout=3", "--innodb-lock-wait-timeout=3",
            "--log-bin-trust-function-creators=1", "--max-connections=100",
            "--transaction-isolation=READ-COMMITTED",  # millrace's default (docs/status.md)
        )  # fmt: skip
        self.address = Address(self._server.host, self._server.port, str(folder / "mariadb.sock"), (NAMES, ROUNDING, MOMENT))
        with contextlib.closing(self._line()) as line:
            self._globals = _globals(line)

    def _line(self) -> Line:
        return Line(Address(self.address.host, self.address.port, self.address.socket), "root", "", "information_schema", 20)

    def clean(self) -> None:
        """As it was at the beginning, whatever a file has done."""
        with contextlib.closing(self._line()) as line:
            for row in line.ask("SELECT id FROM processlist WHERE id <> CONNECTION_ID() AND user <> 'system user'").rows or ():
                line.ask(f"KILL {_text(row[0])}")
            for name, value in _globals(line).items():
                if self._globals.get(name) != value:
                    before = self._globals.get(name) or ""
                    line.ask(f"SET GLOBAL {name} = {before if before.lstrip('-').isdigit() else repr(before)}")
            for user, host, role in line.ask("SELECT user, host, is_role FROM mysql.user").rows or ():
                if user not in OWN_USERS:
                    line.ask(f"DROP ROLE '{_text(user)}'" if role == b"Y" else f"DROP USER '{_text(user)}'@'{_text(host)}'")
            _drop_databases(line)

    def stop(self) -> None:
        self._server.stop()


class EmbeddedMillrace:
    """The engine and its MySQL face in a process of their own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="millrace-mariadb-test-"))
        context = multiprocessing.get_context("fork")
        near, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(self.folder, far))
        self._process.start()
        if not near.poll(START_TIMEOUT_S):
            self.stop()
            raise RuntimeError("millrace did not start")
        self.address = Address("127.0.0.1", near.recv(), None, (NAMES, MOMENT))

    def prepare(self) -> None:
        _prepare(self.address)

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        for left in FOLDER.glob(f"{SegmentNames(str(self.folder), 0).prefix}*"):
            left.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class ClusterMillrace:
    """A real cluster, one for many files."""

    log = ""

    def __init__(self, workers: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="millrace-mariadb-test-"))
        self._server = MillraceServer(self.folder / "data", f"--workers={workers}", "--durability=os")
        self.address = Address(self._server.host, self._server.mysql_port, None, (NAMES, MOMENT))

    def prepare(self) -> None:
        _prepare(self.address)

    def stop(self) -> None:
        self._server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _prepare(address: Address) -> None:
    with contextlib.closing(Line(Address(address.host, address.port), "root", "", "information_schema", 60)) as line:
        for sql in (
            f"SET GLOBAL sql_mode = '{SQL_MODE}'", "SET GLOBAL local_infile = 1", "SET GLOBAL innodb_lock_wait_timeout = 3",
            "SET GLOBAL cte_max_recursion_depth = 100000", "SET GLOBAL collation_server = utf8mb4_general_ci", "SET GLOBAL default_collation_for_utf8mb4 = utf8mb4_general_ci",
        ):  # fmt: skip
            line.ask(sql)
        _drop_databases(line)


def _drop_databases(line: Line) -> None:
    line.ask("SET foreign_key_checks = 0")
    for (name,) in line.ask("SHOW DATABASES").rows or ():
        if name not in OWN_DATABASES:
            line.ask(f"DROP DATABASE `{_text(name)}`")
    line.ask("CREATE DATABASE test COLLATE utf8mb4_general_ci")


def _globals(line: Line) -> dict[str, str]:
    return {_text(row[0]): _text(row[1]) for row in line.ask("SHOW GLOBAL VARIABLES").rows or ()}


def _text(cell: bytes | None) -> str:
    return "" if cell is None else cell.decode("utf-8", "surrogateescape")


def _serve(folder: Path, started: Any) -> None:
    """The other process: it ends with the one that made it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(filename=folder / "log", level=logging.WARNING, force=True)

    async def main() -> None:
        database = await open_embedded(folder / "data", names=SegmentNames(str(folder), 0))
        server = Server(database)
        started.send(await server.listen("127.0.0.1", 0))
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    os._exit(0)
