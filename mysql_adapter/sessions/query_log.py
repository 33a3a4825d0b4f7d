"""The general log and the slow query log, as MySQL writes them, to files in the folder of the logs.

All adapters append to the same files, each statement in one write. While a log is on, statements are not answered by
shortcuts, so that all of them come by here; while it is off, it costs nothing but to look at the clock. A file that was moved
away is begun anew with the next statement, so FLUSH LOGS has nothing to tell other adapters; one that is full is moved
aside by the first adapter that notices. What follows
IDENTIFIED or PASSWORD is left out. A prepared statement is written with its `?`.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mysql_mimic.types import Commands as COM

from backend.execution.counted_statements import SLOW_S
from backend.network.origin import observers
from backend.processes.process_log import first_place, without_secrets
from backend.processes.statement_counts import SlowStatement
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import Value
from mysql_adapter.sessions.statement_origin import shown_statement, statement_name

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session
    from mysql_adapter.sessions.variables import Variables
    from mysql_adapter.shortcuts.shortcuts import Shortcuts

VARIABLES = frozenset({"general_log", "slow_query_log", "general_log_file", "slow_query_log_file", "log_output"})
FILE_BYTES_MAX = 100_000_000
_HEADER = "{}, Version: {} ({}). started with:\nTcp port: {}  Unix socket: {}\nTime                 Id Command    Argument\n"
_COMMANDS = {
    COM.COM_QUERY: "Query", COM.COM_STMT_PREPARE: "Prepare", COM.COM_STMT_EXECUTE: "Execute", COM.COM_INIT_DB: "Init DB",
    COM.COM_QUIT: "Quit", COM.COM_PING: "Ping", COM.COM_STMT_CLOSE: "Close stmt", COM.COM_STMT_RESET: "Reset stmt",
    COM.COM_CHANGE_USER: "Change user", COM.COM_FIELD_LIST: "Field List", COM.COM_STATISTICS: "Statistics",
}  # fmt: skip

log = logging.getLogger(__name__)


class QueryLog:
    """`is_on` if statements are written; `slow_count` counts those that took longer than long_query_time in any case."""

    def __init__(self, settings: Variables, shortcuts: Shortcuts) -> None:
        self._settings = settings
        self._shortcuts = shortcuts
        self._folder: Path | None = None
        self._general: _LogFile | None = None
        self._slow: _LogFile | None = None
        self.is_on = False
        self.slow_count = 0

    def write_to(self, folder: Path) -> None:
        self._folder = folder
        self._settings.put("general_log_file", str(folder / "general.log"))
        self._settings.put("slow_query_log_file", str(folder / "slow.log"))
        self._turn_shortcuts()

    def checked(self, name: str, value: Value) -> Value:
        """A name of a file as the variable holds it: in the folder of the logs, nowhere else."""
        if name not in ("general_log_file", "slow_query_log_file") or self._folder is None:
            return value
        path = self._folder / str(value)
        if not str(value) or path.parent != self._folder or path.name in ("", ".", ".."):
            raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, name, value)
        return str(path)

    def settings_changed(self) -> None:
        get = self._settings.get
        to_file = "FILE" in str(get("log_output")).upper().split(",") and self._folder is not None
        self._general = _LogFile(Path(str(get("general_log_file"))), self._header) if get("general_log") and to_file else None
        self._slow = _LogFile(Path(str(get("slow_query_log_file"))), self._header) if get("slow_query_log") and to_file else None
        self.is_on = self._general is not None or self._slow is not None
        self._turn_shortcuts()

    def _turn_shortcuts(self) -> None:
        """Off while each statement is to be seen."""
        self._shortcuts.turn(off=self.is_on or observers.spans is not None)

    def flush(self) -> None:
        for each in (self._general, self._slow):
            if each is not None:
                each.close()

    def connected(self, session: Session) -> None:
        if self._general is not None:
            user, host = session.account.user, session.host_name
            kind = "SSL/TLS" if session.connection.stream.tls is not None else "TCP/IP"
            self._write_general(session, "Connect", f"{user}@{host} on {session.database or ''} using {kind}")

    def command(self, session: Session, command: int, text: str) -> None:
        """A command has come."""
        if self._general is not None:
            self._write_general(session, _COMMANDS.get(COM(command), "Query") if command in list(COM) else "Error", text)

    def took(self, session: Session, text: str, seconds: float) -> None:
        """A command has taken longer than long_query_time, or SLOW_S."""
        if seconds >= SLOW_S and text:
            place = session.account.user, session.host_name, session.database or "", session.connection.id
            slow = SlowStatement(time.time(), *place, seconds, without_secrets(text), statement_name(session))
            session.environment.statements.slow.append(slow)
        if seconds < session.long_query_s:
            return
        self.slow_count += 1
        log.info("a statement took %.3f s: %s", seconds, shown_statement(session))
        if self._slow is None or not text:
            return
        user, sent = session.account.user, session.found_rows if session.row_count == -1 else 0
        use = f"use {session.database};\n" if session.database else ""
        self._slow.write(
            f"# Time: {_now()}\n# User@Host: {user}[{user}] @ {session.host_name} []  Id: {session.connection.id:5d}\n"
            f"# Query_time: {seconds:.6f}  Lock_time: 0.000000 Rows_sent: {sent}  Rows_examined: {sent}\n"
            f"{use}SET timestamp={int(time.time() - seconds)};\n{without_secrets(text)};\n"
        )

    def _write_general(self, session: Session, command: str, text: str) -> None:
        assert self._general is not None
        self._general.write(f"{_now()}\t{session.connection.id:5d} {command}\t{without_secrets(text)}\n")

    def _header(self) -> str:
        get = self._settings.get
        return _HEADER.format("millrace", get("version"), get("version_comment"), get("port"), get("socket"))


class _LogFile:
    def __init__(self, path: Path, header: Callable[[], str]) -> None:
        self._path = path
        self._header = header
        self._file = -1
        self._inode = 0

    def write(self, text: str) -> None:
        try:
            if self._file < 0 or not self._has_room():
                self._open()
            os.write(self._file, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)
            self.close()

    def _has_room(self) -> bool:
        """Whether the file is still there, and not full."""
        found = self._found()
        if found is not None and found.st_size >= FILE_BYTES_MAX:
            self._move_aside()
            return False
        return found is not None

    def _found(self) -> os.stat_result | None:
        """The file that is open, if it still has its name."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found if found.st_ino == self._inode else None

    def _move_aside(self) -> None:
        """Once, by whichever adapter: who has the lock and finds the file in its place."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        if self._found() is not None:
            os.replace(self._path, first_place(self._path))

    def _open(self) -> None:
        self.close()
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        found = os.fstat(self._file)
        self._inode = found.st_ino
        if not found.st_size:
            os.write(self._file, self._header().encode())

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
