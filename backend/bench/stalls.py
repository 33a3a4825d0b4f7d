"""`millrace bench stalls`: how long others wait while somebody's statement is heavy, with one adapter.

One connection runs a heavy statement. Meanwhile three others send point reads of a few keys, point reads of
any key, and writes of single rows of another table, a hundred a second each. A latency counts from when the request
is sent. Whoever waits sends nothing meanwhile, so percentiles count a latency of several intervals once for each request that would
have been due in it, and that one as so much shorter. `loop_hold_max_ms` is the adapter's own measure: the longest
time, in processor time, for which its event loop did not get its turn.

What misses the goals is said at the end: reads below 20 ms in 99 of 100 cases, and nobody waits for 100 ms.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pymysql

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.mariadb import connect
from backend.bench.options import option
from backend.bench.servers import millrace
from backend.bench.stall_statements import TABLE, Heavy, heavy_statements, load_lines

INTERVAL_S = 0.01
KEYS_HIT = 20
MEASURED_S_MIN = 2.0
"""A short statement is measured with what comes after it."""
KINDS = ("hit", "miss", "write")
GOALS_MS = {"hit": (20.0, 100.0), "miss": (20.0, 100.0), "write": (inf, 100.0)}
"""The 99th percentile, and the longest."""
LOADED_ROWS = 20_000
METRICS = (
    "hit_p99_ms", "hit_max_ms", "miss_p99_ms", "miss_max_ms", "write_p99_ms", "write_max_ms", "loop_hold_max_ms", "statement_s",
)  # fmt: skip
STATUS = "Millrace_loop_hold_max_ms"


@dataclass(frozen=True, slots=True)
class Options:
    rows: int = option(500_000, "rows of the table that heavy statements are about")
    only: str = option("", "names of heavy statements, with commas; all if empty")
    workers: int = option(1, "workers of the cluster")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    chosen = [each for each in options.only.split(",") if each]
    statements = [each for each in heavy_statements(options.rows) if not chosen or each.name in chosen]
    found: list[dict[str, Any]] = []
    with scratch() as folder:
        file = folder / "rows.csv"
        advance("starting millrace", 0.0)
        with (
            millrace(folder / "millrace", "--adapters=1", f"--workers={options.workers}") as server,
            ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other,
        ):
            other.submit(_fill, server.port, options.rows, str(file)).result()
            for number, heavy in enumerate(statements):
                advance(heavy.name, (number + 1) / (len(statements) + 1))
                figures = _measured(server.port, partial(_run_elsewhere, other, server.port, heavy, str(file)))
                found.append({"statement": heavy.name, **figures})
                for metric in METRICS:
                    yield Measurement("stalls", f"{heavy.name} {metric}", figures[metric], metric.rpartition("_")[2])
    results = Path("bench-results")
    results.mkdir(exist_ok=True)
    (results / "stalls.json").write_text(json.dumps({"rows": options.rows, "statements": found}, indent=1))
    (results / "stalls.txt").write_text(summary(found))
    print(summary(found), file=sys.stderr)
    yield Measurement("stalls", "goals_missed", sum(len(missed(each)) for each in found), "figures")


def missed(figures: dict[str, Any]) -> list[str]:
    """The figures of a statement that are not below their goals."""
    goals = [(f"{kind}_{metric}_ms", goal) for kind in KINDS for metric, goal in zip(("p99", "max"), GOALS_MS[kind])]
    return [metric for metric, goal in goals if figures[metric] >= goal]


def summary(found: list[dict[str, Any]]) -> str:
    """A line for each statement: p99 and the longest of each kind, and what misses its goal."""
    lines = [f"{'statement':<16}{'seconds':>8}" + "".join(f"{f'{kind} p99/max ms':>20}" for kind in KINDS) + "  misses"]
    for each in found:
        figures = "".join(f"{each[f'{kind}_p99_ms']:>12.1f} / {each[f'{kind}_max_ms']:<5.0f}" for kind in KINDS)
        error = f"  ({each['error'][:60]})" if each["error"] else ""
        lines.append(f"{each['statement']:<16}{each['statement_s']:>8.2f}{figures}  {' '.join(missed(each)) or '-'}{error}")
    return "\n".join(lines) + "\n"


def _fill(port: int, rows: int, file: str) -> None:
    """The tables, and a file with as many rows for LOAD DATA."""
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE stalls")
        cursor.execute("USE stalls")
        cursor.execute("SET GLOBAL local_infile = 1")
        for name in ("big", "target", "loaded"):
            cursor.execute(TABLE.format(name))
        cursor.execute("CREATE TABLE small (id INT NOT NULL PRIMARY KEY, n INT NOT NULL)")
        cursor.execute("INSERT INTO small VALUES " + ",".join(f"({n}, 0)" for n in range(1_000)))
        for first in range(0, rows, LOADED_ROWS):
            lines = load_lines(first, min(LOADED_ROWS, rows - first))
            values = ",".join(f"({', '.join(_quoted(each) for each in line)})" for line in lines)
            cursor.execute(f"INSERT INTO big VALUES {values}")
    Path(file).write_text("".join("\t".join(map(str, line)) + "\n" for line in load_lines(0, rows)))


def _quoted(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _run_elsewhere(other: ProcessPoolExecutor, port: int, heavy: Heavy, file: str) -> tuple[float, str]:
    return other.submit(_run, port, heavy, file).result()


def _run(port: int, heavy: Heavy, file: str) -> tuple[float, str]:
    """Run the statement in a process of its own: the seconds it took, and the error it ended with."""
    connection = pymysql.connect(
        host="127.0.0.1", port=port, user="root", database="stalls", autocommit=True, local_infile=True,
        cursorclass=pymysql.cursors.SSCursor, max_allowed_packet=64 << 20,
    )  # fmt: skip
    with connection, connection.cursor() as cursor:
        for sql in heavy.before:
            cursor.execute(sql)
        sql = heavy.sql.replace("{file}", file)
        started = time.perf_counter()
        error = ""
        try:
            cursor.execute(sql)
            while cursor.fetchmany(1_000):
                pass
        except pymysql.MySQLError as failure:
            error = str(failure)
        took_s = time.perf_counter() - started
        for sql in heavy.after:
            cursor.execute(sql)
    return took_s, error


def _measured(port: int, heavy: Callable[[], tuple[float, str]]) -> dict[str, Any]:
    """The latencies of others while `heavy` runs, in milliseconds."""
    stop = threading.Event()
    probes = [_Probe(port, kind, stop) for kind in KINDS]
    for probe in probes:
        probe.start()
    for probe in probes:
        probe.ready.wait()
    with connect(port, "stalls") as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH STATUS")
        for probe in probes:
            probe.latencies_s.clear()
        took_s, error = heavy()
        time.sleep(max(0.0, MEASURED_S_MIN - took_s))
        stop.set()
        cursor.execute("SHOW GLOBAL STATUS LIKE %s", (STATUS,))
        status = dict(cursor.fetchall())
    figures: dict[str, Any] = {"statement_s": took_s, "loop_hold_max_ms": float(status.get(STATUS, 0)), "error": error}
    for probe in probes:
        probe.join()
        ordered = sorted(_with_omitted(probe.latencies_s)) or [0.0]
        for metric, place in (("p50", len(ordered) // 2), ("p99", len(ordered) * 99 // 100), ("max", -1)):
            figures[f"{probe.kind}_{metric}_ms"] = ordered[place] * 1000
    return figures


def _with_omitted(latencies_s: list[float]) -> Iterator[float]:
    """The latencies, and those of requests that were not sent as their connection waited."""
    for latency_s in latencies_s:
        while latency_s > 0:
            yield latency_s
            latency_s -= INTERVAL_S


class _Probe(threading.Thread):
    """A connection that sends a request whenever one is due."""

    def __init__(self, port: int, kind: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.kind = kind
        self.latencies_s: list[float] = []
        self.ready = threading.Event()
        self._port = port
        self._halt = stop

    def run(self) -> None:
        chance = random.Random(7)
        with connect(self._port, "stalls") as connection, connection.cursor() as cursor:
            for _ in range(KEYS_HIT * 3):
                self._ask(cursor, chance)
            self.ready.set()
            due = time.perf_counter()
            while not self._halt.is_set():
                due = max(due + INTERVAL_S, time.perf_counter())
                time.sleep(max(0.0, due - time.perf_counter()))
                sent = time.perf_counter()
                self._ask(cursor, chance)
                self.latencies_s.append(time.perf_counter() - sent)

    def _ask(self, cursor: Any, chance: random.Random) -> None:
        if self.kind == "write":
            cursor.execute(f"UPDATE small SET n = n + 1 WHERE id = {chance.randrange(1_000)}")
        else:
            key = chance.randrange(KEYS_HIT if self.kind == "hit" else 100_000_000)
            cursor.execute(f"SELECT id, n FROM {'small' if self.kind == 'hit' else 'big'} WHERE id = {key}")
            cursor.fetchall()
