"""The load processes of `millrace bench vote`, and one measurement with all of them.

They are the application's own (`apps.vote.load`), the same for every system: some read, the others vote.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.bench.load_processes import answer_of, end, tell
from backend.bench.load_search import LoadPoint, quantile

SOJOURN_EDGES_S = np.geomspace(1e-5, 10.0, 241).tolist()
"""As in apps.vote.load."""
DRAW_S = 5e-8
"""Drawing one request beforehand takes less than this."""
START_S = 0.1
IDLE: dict[str, Any] = {"requests": 0, "offered": 0, "answered": 0, "histogram": [], "cpu_s": 0.0}
"""What a process answers that has nothing to do."""


@dataclass(frozen=True, slots=True)
class CrowdSize:
    readers: int
    voters: int
    batch_max: int


class Crowd:
    def __init__(self, system: str, address: dict[str, Any], stories: int, distribution: str, size: CrowdSize) -> None:
        self._processes = []
        self._readers = size.readers
        for number in range(size.readers + size.voters):
            what = "reads" if number < size.readers else "votes"
            command = [sys.executable, "-m", "apps.vote.load", system, json.dumps(address), what, str(stories)]
            command += [distribution, str(size.batch_max), str(number + 1)]
            self._processes.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        for process in self._processes:
            answer_of(process)

    def do(self, what: str) -> None:
        """Something that one of them does for all."""
        tell(self._processes[0], {"do": what})
        answer_of(self._processes[0])

    def measure(
        self, rate: float, votes_share: float, warm_s: float, measure_s: float, cpu_s: Callable[[], float]
    ) -> LoadPoint:
        voters = len(self._processes) - self._readers
        rates = [rate * (1 - votes_share) / self._readers] * self._readers + [rate * votes_share / voters] * voters
        start = time.monotonic() + START_S + DRAW_S * max(rates) * (warm_s + measure_s)
        cpu_before = cpu_s()
        for number, (process, share) in enumerate(zip(self._processes, rates)):
            load = {"do": "load", "rate": share, "start": start, "warm_s": warm_s, "measure_s": measure_s, "seed": number}
            if share:
                tell(process, load)
        answers = [answer_of(process) if share else IDLE for process, share in zip(self._processes, rates)]
        requests = max(sum(each["requests"] for each in answers), 1)
        histograms = [np.sum([each["histogram"] for each in some], axis=0) for some in _apart(answers, self._readers)]
        # Of reads and votes together, 5 % of votes could wait for ever and nobody would notice.
        slowest = max(quantile(each.tolist(), SOJOURN_EDGES_S, 0.95) for each in histograms)
        return LoadPoint(
            sum(each["offered"] for each in answers) / measure_s,
            sum(each["answered"] for each in answers) / measure_s,
            quantile(np.sum(histograms, axis=0).tolist(), SOJOURN_EDGES_S, 0.5) * 1000,
            slowest * 1000,
            (cpu_s() - cpu_before) / requests * 1e6,
            sum(each["cpu_s"] for each in answers) / requests * 1e6,
        )

    def close(self) -> None:
        end(self._processes)


def _apart(answers: list[dict[str, Any]], readers: int) -> list[list[dict[str, Any]]]:
    """What those who read answer, and those who vote; whoever there is none of is left out."""
    return [some for some in (answers[:readers], answers[readers:]) if sum(each["offered"] for each in some)]
