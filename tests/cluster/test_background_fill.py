"""A large view comes while others write and read: nobody waits for it, and it is right when it is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serving import MillraceServer

BATCH = 5000
GROUPS = 500
TOTALS = "SELECT story_id, COUNT(*), SUM(vote) FROM votes GROUP BY story_id"
OF_STORY = "SELECT story_id, COUNT(*), SUM(vote) FROM votes WHERE story_id = {} GROUP BY story_id"
HUGE = 0
"""The story that every other vote is for."""
PAUSE_MAX_S = 5.0
"""The goal is one second, on a machine that does nothing else."""


class Loop:
    """A client that runs a statement over and over; `longest_s` is how long it had to wait at most."""

    def __init__(self, server: MillraceServer, *statements: str) -> None:
        self.longest_s = 0.0
        self.count = 0
        self.failure: BaseException | None = None
        self._ended = threading.Event()
        self._server, self._statements = server, statements
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._server.connect("d") as connection, connection.cursor() as cursor:
                while not self._ended.is_set():
                    for statement in self._statements:
                        began = time.perf_counter()
                        cursor.execute(statement)
                        self.longest_s = max(self.longest_s, time.perf_counter() - began)
                        self.count += 1
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("fill") / "data", "--adapters=2", "--durability=os", f"--workers={request.param}")
    yield server
    server.kill()


def fill(server: MillraceServer, rows: int) -> Any:
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute("DROP DATABASE IF EXISTS d")
    cursor.execute("CREATE DATABASE d")
    cursor.execute("USE d")
    cursor.execute("CREATE TABLE votes (id INT PRIMARY KEY, story_id INT NOT NULL, vote INT NOT NULL, KEY (story_id))")
    cursor.execute("CREATE TABLE pages (id INT PRIMARY KEY, visits INT NOT NULL)")
    cursor.execute("INSERT INTO pages VALUES (1, 0), (2, 0)")
    for start in range(0, rows, BATCH):
        values = (f"({n}, {n % GROUPS if n % 2 else HUGE}, 1)" for n in range(start, start + BATCH))
        cursor.execute("INSERT INTO votes VALUES " + ", ".join(values))
    return cursor


def check(server: MillraceServer, rows: int) -> tuple[float, float]:
    """The longest that a writer and a reader had to wait meanwhile."""
    cursor = fill(server, rows)
    writer = Loop(
        server,
        "UPDATE pages SET visits = visits + 1 WHERE id = 1",
        "UPDATE votes SET vote = 1 - vote, story_id = 3 WHERE id = 1",
        "UPDATE votes SET vote = 1 - vote, story_id = 1 WHERE id = 1",
    )
    reader = Loop(server, "SELECT visits FROM pages WHERE id = 2", OF_STORY.format(7))

    def views() -> int:
        return int(server.status()["shards"][0]["views"])

    while reader.count < 10 or writer.count < 10:
        cursor.execute("DO 0")  # their views are there before this one is
    before = views()
    attempts = 0
    while views() == before and attempts < 200:
        cursor.execute(TOTALS)
        attempts += 1
    assert views() > before
    cursor.execute(OF_STORY.format(HUGE))
    cursor.execute(OF_STORY.format(HUGE))
    assert cursor.fetchall() == ((HUGE, rows // 2, rows // 2),)
    writer.end()
    reader.end()
    assert writer.count > 10 and reader.count > 10
    cursor.execute("UPDATE votes SET vote = 5, story_id = 1 WHERE id = 1")
    cursor.execute(TOTALS)
    totals = {story: (count, total) for story, count, total in cursor.fetchall()}
    each = rows // GROUPS
    assert totals.pop(HUGE) == (rows // 2, rows // 2) and totals.pop(1) == (each, each + 4)
    assert totals == dict.fromkeys(range(3, GROUPS, 2), (each, each))
    return writer.longest_s, reader.longest_s


def test_nobody_waits_for_a_view_over_many_rows(server: MillraceServer) -> None:
    assert max(check(server, 60_000)) < PAUSE_MAX_S


@pytest.mark.slow
def test_nobody_waits_for_a_view_over_a_million_rows(server: MillraceServer) -> None:
    waits = check(server, 1_000_000)
    print(f"longest wait of a writer {waits[0]:.3f} s, of a reader {waits[1]:.3f} s")
    assert max(waits) < PAUSE_MAX_S
