"""`millrace bench lobsters -- --soak-s 600 --rate 300`: a long load, while a view comes and goes and a worker is killed.

The view is added, read and dropped every `CHANGE_S`; in the middle one worker gets kill -9. What counts is said for the whole time but the
`RECOVERY_S` after the kill: errors, and the seconds whose p95 is not within the bound. At the end MariaDB gets a copy of the tables, and the same
pages are run on both.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pymysql

from backend.bench import Measurement
from backend.bench.lobsters_users import LobstersUsers, PageLoad, memory_mb
from backend.bench.mariadb import connect, mariadb
from backend.bench.servers import MeasuredServer

CHANGE_S = 5.0
RECOVERY_S = 3
SAMPLE_S = 10.0
CHECKED_PAGES = 300
ADDED = "SELECT user_id, COUNT(*) AS given, SUM(vote) AS up FROM votes GROUP BY user_id"


@dataclass
class Disturbance:
    """What happens beside the load, in a thread."""

    server: MeasuredServer
    database: str
    seconds: float
    killed_s: float = 0.0
    changes: int = 0
    refused: list[str] = field(default_factory=list)
    memory_mb: list[tuple[float, float]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        begun = time.monotonic()
        changes, samples = begun + CHANGE_S, begun
        while not self._ended.wait(0.2):
            now = time.monotonic()
            if now >= samples:
                self.memory_mb.append((now - begun, memory_mb(self.server)))
                samples += SAMPLE_S
            if not self.killed_s and now - begun >= self.seconds / 2:
                os.kill(worker_process(self.server), signal.SIGKILL)
                self.killed_s = now - begun
            if now >= changes:
                changes += CHANGE_S
                self._change(now - begun)

    def _change(self, at_s: float) -> None:
        """A view that is there from the second time its query is asked, until it is dropped."""
        name = f"added_{self.changes}"
        try:
            with contextlib.closing(connect(self.server.port, self.database)) as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE VIEW {name} AS {ADDED}")
                for user in range(1, 11):
                    cursor.execute(f"SELECT * FROM {name} WHERE user_id = %s", (user,))
                cursor.execute(f"DROP VIEW {name}")
            self.changes += 1
        except pymysql.err.Error as error:
            self.refused.append(f"{at_s:.0f} s: {error}")

    def end(self) -> None:
        self._ended.set()


def worker_process(server: MeasuredServer) -> int:
    """The process of shard 0: forked by Spark's daemon."""
    daemons = [each for each in server.processes() if "backend.jobs.task_daemon" in _command(each)]
    numbers = {each.pid for each in daemons}
    forked: list[psutil.Process] = [each for each in daemons if each.ppid() in numbers]
    return int(max(forked, key=lambda each: each.memory_info().rss).pid)


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):  # or it has ended, and nobody has asked how
        return " ".join(process.cmdline())
    return ""


def soak(users: LobstersUsers, server: MeasuredServer, database: str, rate: float, seconds: float, bound_ms: float) -> tuple[PageLoad, list[Measurement]]:
    beside = Disturbance(server, database, seconds)
    thread = threading.Thread(target=beside.run)
    thread.start()
    try:
        point = users.measure(rate, 0.0, seconds)
    finally:
        beside.end()
        thread.join()
    spared = range(int(beside.killed_s), int(beside.killed_s) + RECOVERY_S + 1)
    counted = [each for each in point.seconds if each[0] not in spared]
    late = [each for each in counted if not each[3] < bound_ms]
    sizes = [size for _, size in beside.memory_mb[len(beside.memory_mb) // 4 :]] or [0.0]
    values = {
        "seconds beyond the bound": (len(late), "s"),
        "errors outside of the recovery": (sum(each[4] for each in counted), "pages"),
        "errors in the recovery": (sum(each[4] for each in point.seconds if each[0] in spared), "pages"),
        "views added and dropped": (beside.changes, ""),
        "changes of views refused": (len(beside.refused), ""),
        "memory, least and most": (min(sizes), f"MB, {max(sizes):,.0f} MB"),
    }
    return point, [Measurement("lobsters", f"soak: {name}", value, unit) for name, (value, unit) in values.items()]


def compared_at_the_end(
    server: MeasuredServer, database: str, scale: float, folder: Path, lines: Callable[..., Iterator[str]]
) -> Iterator[str]:
    """Answers of pages that are not MariaDB's, on a copy of the tables."""
    with mariadb(folder, "--innodb-flush-log-at-trx-commit=0", "--sql-mode=STRICT_TRANS_TABLES") as port:
        if port is not None:
            list(lines("copy", server.port, port, database, "natural"))
            yield from lines("check", server.port, port, database, "natural", scale, CHECKED_PAGES)
