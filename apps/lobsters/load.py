"""One process of users: `python -m apps.lobsters.load PORT DATABASE VARIANT SCALE PROTOCOL CONNECTIONS mariadb|millrace`.

Partially open loop, as in the paper: requests come at times that are drawn beforehand and never slip. Each connection
serves one page at a time, its statements one after the other; a request that finds none free waits for one, in order. The
sojourn of a page is from its scheduled arrival to the last answer of its statements. One loop serves all connections, so
that the load takes little of the processors that it shares with the server.

The process is told what to do by lines of JSON on its standard input, and answers each by one on its output.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from apps.lobsters.packets import PacketAnswer, ServerError
from apps.lobsters.pages import Answer, Pages, Statement, Step, Visit, page_steps, pages
from apps.lobsters.quick_connection import QuickConnection, Remembered
from apps.lobsters.requests import Request, requests

EDGES_S = np.geomspace(1e-5, 10.0, 241)
"""Of the histograms, which have a last bin for what took longer or was never answered."""
GRACE_S = 10.0
"""Requests that are still waiting so long after the end are given up."""
NEVER = float("inf")


class Visitor:
    """A connection, and the page that it is being served."""

    __slots__ = ("begun", "connection", "number", "statement", "steps")

    def __init__(self, connection: QuickConnection) -> None:
        self.connection = connection
        self.steps: Generator[Step, Answer, Visit] | None = None
        self.statement: Statement | None = None
        self.number, self.begun = -1, 0.0


class Users:
    """All connections of the process."""

    def __init__(self, known: Pages, connect: Callable[[], QuickConnection], connections: int) -> None:
        self._pages = known
        self._connect = connect
        self._poll = select.epoll()
        self._visitors: dict[int, Visitor] = {}
        for _ in range(connections):
            self._add()

    def _add(self) -> Visitor:
        visitor = Visitor(self._connect())
        self._visitors[visitor.connection.fileno()] = visitor
        self._poll.register(visitor.connection.fileno(), select.EPOLLIN)
        return visitor

    def run(self, arrivals_s: list[float], asked: list[Request], start: float, warm_s: float) -> dict[str, Any]:
        """Pages from `start` (of time.monotonic) on; what is measured are those after the warm-up."""
        turn = _Turn(self._pages, arrivals_s, asked, start, warm_s)
        before, clock, poll, visitors = time.process_time(), time.monotonic, self._poll, self._visitors
        free = list(visitors.values())
        following, count = 0, len(arrivals_s)
        end = start + (arrivals_s[-1] if arrivals_s else 0.0) + GRACE_S
        while following < count or len(free) < len(visitors):
            now = clock()
            if now > end:
                break
            while free and following < count and start + arrivals_s[following] <= now:
                visitor = free.pop()
                if not turn.begin(visitor, following):
                    free.append(visitor)
                following += 1
            until = start + arrivals_s[following] if free and following < count else end
            for place, _ in _ready(poll, until - now):
                visitor = visitors[place]
                try:
                    answer = visitor.connection.received()
                    is_over = answer is not None and turn.answered(visitor, answer)
                except (OSError, ServerError) as error:
                    turn.fail(visitor, error)
                    is_over = True
                    if isinstance(error, OSError):
                        visitor = self._replaced(place)
                if is_over:
                    free.append(visitor)
        busy = set(visitors.values()) - set(free)
        turn.give_up(following, busy)
        for visitor in busy:
            self._replaced(visitor.connection.fileno())
        return turn.found() | {"cpu_s": time.process_time() - before}

    def _replaced(self, place: int) -> Visitor:
        """A connection instead of one that is lost, or has an answer under way that nobody waits for."""
        self._poll.unregister(place)
        self._visitors.pop(place).connection.close()
        return self._add()


def _ready(poll: select.epoll, wait_s: float) -> list[tuple[int, int]]:
    """Who can be read. epoll waits for whole milliseconds; what is shorter than that is waited for by select."""
    if wait_s >= 0.001:
        return poll.poll(wait_s // 0.001 * 0.001)
    if wait_s > 0:
        select.select([poll], [], [], wait_s)
    return poll.poll(0)


class _Turn:
    """The requests of one run, and what became of them."""

    def __init__(self, known: Pages, arrivals_s: list[float], asked: list[Request], start: float, warm_s: float) -> None:
        self._pages = known
        self._arrivals_s, self._asked = arrivals_s, asked
        self._start, self._warm_s = start, warm_s
        self._sojourns_s = [NEVER] * len(arrivals_s)
        self._statements: dict[str, list[float]] = defaultdict(list)
        self._errors: list[str] = []
        self._failed: list[int] = []
        self._served = 0

    def begin(self, visitor: Visitor, number: int) -> bool:
        """False if the page has no statement."""
        page, request = self._asked[number]
        request["now"] = datetime.now().replace(microsecond=0)
        visitor.number = number
        visitor.steps = page_steps(self._pages[page], request)
        return not self._go_on(visitor, None)

    def answered(self, visitor: Visitor, answer: PacketAnswer) -> bool:
        """True if that was the page's last statement."""
        assert visitor.statement is not None
        if self._arrivals_s[visitor.number] >= self._warm_s:
            self._statements[visitor.statement.name].append(time.monotonic() - visitor.begun)
        return self._go_on(visitor, answer)

    def _go_on(self, visitor: Visitor, answer: PacketAnswer | None) -> bool:
        assert visitor.steps is not None
        try:
            visitor.statement, values = next(visitor.steps) if answer is None else visitor.steps.send(answer)
        except StopIteration:
            self._served += 1
            self._sojourns_s[visitor.number] = time.monotonic() - self._start - self._arrivals_s[visitor.number]
            return True
        visitor.begun = time.monotonic()
        visitor.connection.send(visitor.statement, values)
        return False

    def fail(self, visitor: Visitor, error: Exception) -> None:
        self._errors.append(f"{self._asked[visitor.number][0]}: {error!r}")
        self._failed.append(int(self._arrivals_s[visitor.number]))

    def give_up(self, following: int, busy: set[Visitor]) -> None:
        """Nobody has waited long enough for those from `following` on, and for those of `busy`."""
        self._failed += [int(self._arrivals_s[visitor.number]) for visitor in busy]
        self._failed += map(int, self._arrivals_s[following:])

    def found(self) -> dict[str, Any]:
        by_page: dict[str, list[float]] = defaultdict(list)
        by_second: dict[int, list[float]] = defaultdict(list)
        for arrival_s, (page, _), sojourn_s in zip(self._arrivals_s, self._asked, self._sojourns_s):
            if arrival_s >= self._warm_s:
                by_page[page].append(sojourn_s)
            by_second[int(arrival_s)].append(sojourn_s)
        return {
            "sojourns": {page: _histogram(times) for page, times in by_page.items()},
            "statements": {name: _histogram(times) for name, times in self._statements.items()},
            "seconds": {second: _histogram(times) for second, times in by_second.items()},
            "failed_in_seconds": sorted(self._failed),
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
    is_prepared, remembered = protocol == "prepared", Remembered()
    users = Users(
        pages(variant, server == "mariadb"),
        lambda: QuickConnection("127.0.0.1", int(port), database, is_prepared, remembered),
        int(connections),
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
