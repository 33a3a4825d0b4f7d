"""One process of users: `python -m apps.lobsters.load PORT DATABASE VARIANT SCALE PROTOCOL CONNECTIONS mariadb|millrace`.

Partially open loop, as in the paper: requests come at times that are drawn beforehand and never slip. Each connection
serves one page at a time; a request that finds none free waits for one, in order. The sojourn of a page is from its
scheduled arrival to the last answer of its statements.

The process is told what to do by lines of JSON on its standard input, and answers each by one on its output.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from apps.lobsters.connection import Connection, connect
from apps.lobsters.pages import Pages, Result, Statement, pages, run_page
from apps.lobsters.requests import Request, requests

EDGES_S = np.geomspace(1e-5, 10.0, 241)
"""Of the histograms, which have a last bin for what took longer or was never answered."""
GRACE_S = 10.0
"""Requests that are still waiting so long after the end are given up."""


class Users:
    """All connections of the process, each with a thread while there is load."""

    def __init__(self, known: Pages, connections: list[Connection]) -> None:
        self._pages = known
        self._connections = connections

    def run(self, arrivals_s: list[float], asked: list[Request], start: float, warm_s: float) -> dict[str, Any]:
        """Pages from `start` (of time.monotonic) on; what is measured are those after the warm-up."""
        turns = _Turns(arrivals_s, asked, start, warm_s)
        before = time.process_time()
        threads = [threading.Thread(target=self._serve, args=(each, turns)) for each in self._connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return turns.found() | {"cpu_s": time.process_time() - before}

    def _serve(self, connection: Connection, turns: _Turns) -> None:
        clock = time.monotonic
        for number, (page, request) in turns.taken():
            request["now"] = datetime.now().replace(microsecond=0)
            took: list[tuple[str, float]] = []

            def timed(statement: Statement, values: list[Any], took: list[tuple[str, float]] = took) -> Result:
                begun = clock()
                result = connection.execute(statement, values)
                took.append((statement.name, clock() - begun))
                return result

            try:
                run_page(self._pages[page], request, timed)
            except Exception as error:  # whatever the driver raises: the page was not served
                turns.fail(number, page, error)
            else:
                turns.finish(number, page, took)


class _Turns:
    """The requests in the order of their arrival, handed out to whoever is free, and what became of them."""

    def __init__(self, arrivals_s: list[float], asked: list[Request], start: float, warm_s: float) -> None:
        self._arrivals_s, self._asked = arrivals_s, asked
        self._start, self._warm_s = start, warm_s
        self._end_s = arrivals_s[-1] if arrivals_s else 0.0
        self._numbers = iter(range(len(arrivals_s)))
        self._sojourns: dict[str, list[float]] = defaultdict(list)
        self._statements: dict[str, list[float]] = defaultdict(list)
        self._errors: list[str] = []
        self._served = 0

    def taken(self) -> Iterator[tuple[int, Request]]:
        for number in self._numbers:  # one step of the iterator is atomic
            arrival_s = self._arrivals_s[number]
            wait_s = self._start + arrival_s - time.monotonic()
            if wait_s < -GRACE_S - (self._end_s - arrival_s):
                self._sojourns[self._asked[number][0]].append(float("inf"))
                continue
            if wait_s > 0:
                time.sleep(wait_s)
            yield number, self._asked[number]

    def finish(self, number: int, page: str, took: list[tuple[str, float]]) -> None:
        self._served += 1
        if self._arrivals_s[number] >= self._warm_s:
            self._sojourns[page].append(time.monotonic() - self._start - self._arrivals_s[number])
            for name, seconds in took:
                self._statements[name].append(seconds)

    def fail(self, number: int, page: str, error: Exception) -> None:
        self._errors.append(f"{page}: {error!r}")
        if self._arrivals_s[number] >= self._warm_s:
            self._sojourns[page].append(float("inf"))

    def found(self) -> dict[str, Any]:
        return {
            "sojourns": {page: _histogram(times) for page, times in self._sojourns.items()},
            "statements": {name: _histogram(times) for name, times in self._statements.items()},
            "pages": self._served,
            "errors": len(self._errors),
            "first_errors": self._errors[:3],
        }


def _histogram(times: list[float]) -> list[int]:
    found: list[int] = np.bincount(np.searchsorted(EDGES_S, times), minlength=len(EDGES_S) + 1).tolist()
    return found


def draw_arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Of a Poisson process."""
    random, at, found = Random(seed), 0.0, []
    while (at := at + random.expovariate(rate)) < seconds:
        found.append(at)
    return found


def main() -> None:
    port, database, variant, scale, protocol, connections, server = sys.argv[1:]
    users = Users(
        pages(variant, server == "mariadb"),
        [connect(protocol, "127.0.0.1", int(port), database) for _ in range(int(connections))],
    )
    print("{}", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        seed = wanted["seed"]
        arrivals_s = draw_arrivals(wanted["rate"], wanted["warm_s"] + wanted["measure_s"], seed)
        asked = list(islice(requests(float(scale), seed, datetime.now()), len(arrivals_s)))
        print("{}", flush=True)  # everything is drawn; the next line says when to begin
        start = json.loads(sys.stdin.readline())["start"]
        print(json.dumps(users.run(arrivals_s, asked, start, wanted["warm_s"])), flush=True)


if __name__ == "__main__":
    main()
