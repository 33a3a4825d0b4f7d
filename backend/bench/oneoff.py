"""`millrace bench oneoff`: queries over a large table that are asked once, beside MariaDB, and what another connection waits for meanwhile.

Each question has other constants each time, so no view answers it. The best of three counts. While ours run, another connection
reads rows by their primary key; how long its reads take is measured by the clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.mariadb import connect, mariadb
from backend.bench.options import option
from backend.bench.servers import millrace
from backend.imports.file_import import FileImport
from backend.imports.files import Dialect, find_files
from backend.imports.journal import Journal
from backend.imports.progress import ImportMeter
from backend.network.server_address import ServerAddress

TABLES = (
    "CREATE TABLE votes (id INT NOT NULL PRIMARY KEY, user INT NOT NULL, story INT NOT NULL, score INT, amount DECIMAL(8, 2) NOT NULL, title VARCHAR(80))",
    "CREATE TABLE stories (id INT NOT NULL PRIMARY KEY, author INT NOT NULL, title VARCHAR(80))",
)
QUESTIONS = {
    "count": "SELECT COUNT(*) FROM votes WHERE score > 5 AND user <> {n}",
    "group": "SELECT score, COUNT(*), SUM(amount) FROM votes WHERE user <> {n} GROUP BY score ORDER BY score",
    "group_many": "SELECT story, COUNT(*) AS c, SUM(score) FROM votes WHERE user <> {n} GROUP BY story ORDER BY c DESC, story LIMIT 10",
    "order": "SELECT id, user, amount FROM votes WHERE user <> {n} ORDER BY amount DESC, id LIMIT 10",
    "join": "SELECT s.author, COUNT(*) AS c FROM votes v JOIN stories s ON s.id = v.story WHERE v.user <> {n} GROUP BY s.author ORDER BY c DESC, s.author LIMIT 10",
}
STORIES = 50_000
TIMES = 3
IDLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    rows: int = option(1_000_000, "rows of the table")
    workers: int = option(1, "shards")
    questions: str = option(",".join(QUESTIONS), "which of them")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    names = options.questions.split(",")
    with scratch() as folder:
        advance("writing files", 0.02)
        files = _write(folder, options.rows)
        advance("filling millrace", 0.1)
        with millrace(folder / "millrace", "--durability=os", f"--workers={options.workers}") as server:
            _fill_ours(server.port, files)
            advance("asking millrace", 0.4)
            reader = _Reader(server.port)
            reader.start()
            time.sleep(IDLE_S)
            idle = reader.stop()
            ours, answers, waits = _asked(server.port, names, reader)
        (folder / "mariadb").mkdir()
        advance("filling MariaDB", 0.6)
        theirs: dict[str, float] = {}
        with mariadb(folder / "mariadb", "--local-infile=1", "--innodb-buffer-pool-size=3G") as port:
            if port is not None:
                _fill_theirs(port, files)
                advance("asking MariaDB", 0.8)
                theirs, expected, _ = _asked(port, names)
                assert answers == expected, "the answers differ"
    yield Measurement("oneoff", "idle_p99", idle * 1e3, "ms")
    for name in names:
        yield Measurement("oneoff", name, ours[name], "s", {"MariaDB": theirs[name]} if theirs else {})
        yield Measurement("oneoff", f"{name}_others_p99", waits[name] * 1e3, "ms")


def _write(folder: Path, rows: int) -> dict[str, Path]:
    votes, stories = folder / "votes.csv", folder / "stories.csv"
    with votes.open("w") as file:
        file.write("id,user,story,score,amount,title\n")
        for n in range(rows):
            file.write(f"{n},{n * 7 % 1000},{n * 31 % STORIES},{n % 11},{n * 13 % 99_991}.{n % 100:02},a title of some length {n}\n")
    with stories.open("w") as file:
        file.write("id,author,title\n")
        file.writelines(f"{n},{n % 977},story {n}\n" for n in range(STORIES))
    return {"votes": votes, "stories": stories}


def _fill_ours(port: int, files: dict[str, Path]) -> None:
    target = ServerAddress("127.0.0.1", port, "root", "", "bench")
    _define(port)
    for table, file in files.items():
        meter = ImportMeter(Console(quiet=True))
        FileImport(target, Journal(table), 1, 10_000, meter).run(find_files([str(file)]), table, (), Dialect(), True)
        assert not meter.rejected


def _fill_theirs(port: int, files: dict[str, Path]) -> None:
    _define(port)
    with ServerAddress("127.0.0.1", port, "root", "", "bench").connect(local_infile=True) as connection, connection.cursor() as cursor:
        for table, file in files.items():
            cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table} FIELDS TERMINATED BY ',' IGNORE 1 LINES")
        connection.commit()
        cursor.execute("ANALYZE TABLE votes, stories")


def _define(port: int) -> None:
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("USE bench")
        for each in TABLES:
            cursor.execute(each)


def _asked(port: int, names: Sequence[str], reader: _Reader | None = None) -> tuple[dict[str, float], list[Any], dict[str, float]]:
    """Seconds, answers, and the 99th percentile of what the reader waited for, of each question."""
    best, answers, waits = {}, [], {}
    with connect(port, "bench") as connection, connection.cursor() as cursor:
        for number, name in enumerate(names):
            took = []
            if reader is not None:
                reader.start()
            for time_ in range(TIMES):
                started = time.perf_counter()
                cursor.execute(QUESTIONS[name].format(n=100 * number + time_))
                answers.append(cursor.fetchall())
                took.append(time.perf_counter() - started)
            if reader is not None:
                waits[name] = reader.stop()
            best[name] = min(took)
    return best, answers, waits


class _Reader:
    """Reads rows by their primary key on a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = threading.Event()
        self._waits: list[float] = []

    def start(self) -> None:
        self._is_over.clear()
        self._waits = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def stop(self) -> float:
        self._is_over.set()
        self._thread.join()
        return sorted(self._waits)[len(self._waits) * 99 // 100]

    def _read(self) -> None:
        with connect(self._port, "bench") as connection, connection.cursor() as cursor:
            number = 0
            while not self._is_over.wait(0.002):
                number = (number + 7919) % STORIES
                started = time.perf_counter()
                cursor.execute(f"SELECT title FROM stories WHERE id = {number}")
                cursor.fetchall()
                self._waits.append(time.perf_counter() - started)
