"""The load processes of `millrace bench lobsters`, and one measurement with all of them.

The processes are the application's own (`apps.lobsters.load`), the same for every server.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from backend.bench.load_processes import answer_of, end, tell
from backend.bench.load_search import LoadPoint, quantile
from backend.bench.mariadb import connect
from backend.bench.servers import MeasuredServer

if TYPE_CHECKING:
    from backend.bench.lobsters import Options

EDGES_S = np.geomspace(1e-5, 10.0, 241).tolist()
"""As in apps.lobsters.load."""
START_S = 0.2
LIST = re.compile(r"\?(, ?\?)+")


@dataclass(frozen=True, slots=True)
class PageLoad(LoadPoint):
    """`pages` and `statements` are [count, p50, p95, p99] in ms by name; `memory_mb` is the server's, shared parts counted once."""

    memory_mb: float = 0.0
    data_files_mb: float = 0.0
    """Of `memory_mb`, what are pages of LevelDB's files, which the system takes back when it needs them."""
    errors: int = 0
    first_errors: tuple[str, ...] = ()
    pages: dict[str, list[float]] = field(default_factory=dict)
    statements: dict[str, list[float]] = field(default_factory=dict)
    answered_by: dict[str, float] = field(default_factory=dict)
    answers: dict[str, list[int]] = field(default_factory=dict)
    """Of each SELECT, as millrace counts them: hits in shared memory, misses (asked of the worker), evaluated."""
    seconds: tuple[tuple[int, int, float, float, int], ...] = ()
    """By second of arrival, the warm-up's among them: second, pages, p50 and p95 in ms, pages that failed."""

    def calm_from_s(self, bound_ms: float) -> float:
        """The second from which on no second's p95 is beyond the bound, and no page fails."""
        return max((second + 1.0 for second, _, _, p95_ms, failed in self.seconds if failed or not p95_ms < bound_ms), default=0.0)


class LobstersUsers:
    def __init__(self, case: str, server: MeasuredServer, database: str, options: Options) -> None:
        system, variant = case.split()
        self._server = server
        self._is_millrace = system == "millrace"
        self._seed = 0
        command = [sys.executable, "-m", "apps.lobsters.load", str(server.port), database, variant, str(options.scale)]
        command += [options.protocol, str(options.connections), system.lower()]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(options.processes)
        ]
        for process in self._processes:
            answer_of(process)

    def measure(self, rate: float, warm_s: float, measure_s: float) -> PageLoad:
        share = rate / len(self._processes)
        for process in self._processes:
            self._seed += 1  # every load has other requests
            tell(process, {"rate": share, "warm_s": warm_s, "measure_s": measure_s, "seed": self._seed})
        for process in self._processes:
            answer_of(process)
        answers_before = self._answers()
        cpu_before, counts_before = self._server.cpu_s(), self._counts()
        for process in self._processes:
            tell(process, {"start": time.monotonic() + START_S})
        answers = [answer_of(process) for process in self._processes]
        cpu_s, counts = self._server.cpu_s() - cpu_before, self._counts()
        served = max(sum(each["pages"] for each in answers), 1)
        pages, statements = _added(answers, "sojourns"), _added(answers, "statements")
        whole = np.sum(list(pages.values()), axis=0).tolist() if pages else [0]
        return PageLoad(
            offered=sum(whole) / measure_s,
            answered=(sum(whole) - whole[-1]) / measure_s,
            p50_ms=quantile(whole, EDGES_S, 0.5) * 1000,
            p95_ms=quantile(whole, EDGES_S, 0.95) * 1000,
            server_cpu_us=cpu_s / served * 1e6,
            client_cpu_us=sum(each["cpu_s"] for each in answers) / served * 1e6,
            memory_mb=memory_mb(self._server),
            data_files_mb=data_files_mb(self._server),
            errors=sum(each["errors"] for each in answers),
            first_errors=tuple(error for each in answers for error in each["first_errors"]),
            pages={name: _summary(histogram) for name, histogram in sorted(pages.items())},
            statements={name: _summary(histogram) for name, histogram in sorted(statements.items())},
            answered_by={name: (counts[name] - count) / served for name, count in counts_before.items()},
            answers={
                text: [now - before for now, before in zip(found, answers_before.get(text, [0, 0, 0]))]
                for text, found in self._answers().items()
            },
            seconds=_seconds(answers),
        )

    def _counts(self) -> dict[str, float]:
        """How millrace has answered its statements until now."""
        if not self._is_millrace:
            return {}
        with contextlib.closing(connect(self._server.port)) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS")
            status = dict(cursor.fetchall())
            cursor.execute("SELECT COALESCE(SUM(misses), 0) FROM millrace.views")
            ((misses,),) = cursor.fetchall()
        return {
            "statements a page": float(status["Questions"]),
            "reads a page": float(status["Com_select"]),
            "hits a page": float(status["Millrace_shortcuts"]),
            "misses a page": float(misses),
        }

    def _answers(self) -> dict[str, list[int]]:
        """How each SELECT was answered until now; those that differ in the length of a list are one."""
        if not self._server.http_port:
            return {}
        request = urllib.request.Request(f"http://127.0.0.1:{self._server.http_port}/v1/queries")
        request.add_header("Authorization", f"Basic {b64encode(b'root:').decode()}")
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)["queries"]
        counts: dict[str, list[int]] = {}
        for each in found:
            if each["kind"].lower() == "select":
                text = LIST.sub("?*", each["text"])
                known = counts.setdefault(text, [0, 0, 0])
                counts[text] = [a + b for a, b in zip(known, (each["hits"], each["asked"], each["evaluated"]))]
        return counts

    def close(self) -> None:
        end(self._processes)


def memory_mb(server: MeasuredServer) -> float:
    """What the server's processes hold together: pages that several share count once."""
    total = 0
    for process in server.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().pss
    return total / 1e6


def data_files_mb(server: MeasuredServer) -> float:
    total = 0
    for process in server.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(each.pss for each in process.memory_maps() if each.path.endswith(".ldb"))
    return total / 1e6


def _added(answers: list[dict[str, Any]], what: str) -> dict[str, Any]:
    found: dict[str, list[Any]] = defaultdict(list)
    for answer in answers:
        for name, histogram in answer[what].items():
            found[name].append(histogram)
    return {name: np.sum(histograms, axis=0) for name, histograms in found.items()}


def _seconds(answers: list[dict[str, Any]]) -> tuple[tuple[int, int, float, float, int], ...]:
    failed = Counter(second for each in answers for second in each["failed_in_seconds"])
    found = []
    for second, histogram in sorted((int(second), histogram) for second, histogram in _added(answers, "seconds").items()):
        count, p50_ms, p95_ms, _ = _summary(histogram)
        found.append((second, int(count), p50_ms, p95_ms, failed[second]))
    return tuple(found)


def _summary(histogram: Any) -> list[float]:
    counted = histogram.tolist()
    return [sum(counted), *(round(quantile(counted, EDGES_S, fraction) * 1000, 3) for fraction in (0.5, 0.95, 0.99))]
