"""The program survives: what was maintained is maintained again, by new workers and in a new cluster, unasked."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from controller.program import (
    ENTRIES_MIN,
    QUERIES_PER_ENTRY,
    MaintainedQuery,
    ProgramRecord,
    ProgramTransition,
    queries_left,
)
from controller.registry import Registry
from dataflow.errors import Retryable
from tests.serving import MillraceServer

DEADLINE_S = 60.0
COUNT = "SELECT story, COUNT(*) FROM votes WHERE story = %s GROUP BY story"
NAMED = "SELECT votes FROM counts WHERE story = %s"


def rows(server: MillraceServer, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def maintained(server: MillraceServer, wanted: int) -> dict[str, tuple[Any, ...]]:
    """What is maintained, by name, once there is as much as this."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = rows(server, "SELECT name, tables, named_views, since, hits + misses FROM millrace.views ORDER BY name")
        if len(found) == wanted or time.monotonic() > deadline:
            assert len(found) == wanted, found
            return {row[0]: row[1:] for row in found}


def check_the_record(server: MillraceServer) -> None:
    """What does not fit into one znode is in several, and leaves none behind; who does not know the newest transition records none."""
    registry = Registry(server.deployment().zookeeper, "other", server.deployment().secret_bytes)
    registry.start()
    try:
        program, other = ProgramRecord(registry), ProgramRecord(registry)
        large = MaintainedQuery(b"large", b"x" * 1_500_000, (0,), (), ((1, 1),), ("d.v",), 1.0)
        assert program.load() == other.load() == []
        first = ProgramTransition(1, 1.0, (large,), ())
        program.record(first)
        with pytest.raises(Retryable):
            other.record(ProgramTransition(1, 1.0, (), ()))
        assert program.load() == other.load() == ProgramRecord(registry).load() == [first]
        many = [ProgramTransition(number, 1.0, (MaintainedQuery(b"%d" % number, b"", (), (), (), (), 1.0),), ()) for number in range(2, 60)]
        for each in [ProgramTransition(60, 2.0, (), (b"large",)), *many]:
            other.record(each)
        assert queries_left(program.load()).keys() == queries_left(other.load()).keys() == {b"%d" % number for number in range(2, 60)}
        other.clean()
        left = registry.client.get_children(registry.path("program"))
        assert len(left) <= ENTRIES_MIN + 60 // QUERIES_PER_ENTRY and not any("." in each for each in left)
    finally:
        registry.stop()


def test_what_was_maintained_is_maintained_again_after_any_restart(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--controllers=2")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
    rows(server, "CREATE TABLE votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT, KEY (story))")
    rows(server, "CREATE TABLE other (id INT PRIMARY KEY)")
    rows(server, "CREATE VIEW counts AS SELECT story, COUNT(*) AS votes FROM votes WHERE id > 0 GROUP BY story")
    rows(server, "INSERT INTO votes (story) VALUES (1), (1), (2)")
    for sql, answer in ((COUNT, [(1, 2)]), (NAMED, [(2,)]), ("SELECT * FROM other WHERE id = %s", [])) * 2:
        assert rows(server, sql, 1) == answer
    before = maintained(server, 3)
    assert sorted(each[1] or "" for each in before.values()) == ["", "", "d.counts"]

    rows(server, "CREATE INDEX by_id ON votes (story, id)")
    assert {name: each[:3] for name, each in maintained(server, 3).items()} == {name: each[:3] for name, each in before.items()}, "go on"
    rows(server, "DROP INDEX story ON votes")
    again = maintained(server, 3)
    assert again.keys() == before.keys(), "come back unasked"
    for sql, answer in ((COUNT, [(1, 2)]), (NAMED, [(2,)])) * 2:
        assert rows(server, sql, 1) == answer
    before = maintained(server, 3)
    assert before.keys() == again.keys()

    check_the_record(server)

    [shard] = server.status()["shards"]
    os.kill(shard["process"], 9)
    again = maintained(server, 3)
    assert {name: each[:3] for name, each in again.items()} == {name: each[:3] for name, each in before.items()}

    leader = server.status()["leader"]
    os.kill(leader, 9)
    os.kill(server.status()["shards"][0]["process"], 9)
    assert maintained(server, 3).keys() == before.keys()

    server.kill()
    server = MillraceServer(tmp_path / "data")
    again = maintained(server, 3)
    assert {name: each[:3] for name, each in again.items()} == {name: each[:3] for name, each in before.items()}
    assert all(each[3] == 0 for each in again.values())
    assert rows(server, COUNT, 2) == [(2, 1)]
    assert sum(each[3] for each in maintained(server, 3).values()) == 1, "asked for once, and answered from the view"

    rows(server, "DROP VIEW counts")
    assert all(each[1] is None for each in maintained(server, 2).values()), "dropped is dropped"
    os.kill(server.status()["shards"][0]["process"], 9)
    assert all(each[1] is None for each in maintained(server, 2).values()), "also after a restart"

    rows(server, "ALTER TABLE votes ADD COLUMN user INT FIRST")
    assert maintained(server, 2).keys() < before.keys(), "they do not use it"
    os.kill(server.status()["shards"][0]["process"], 9)
    assert maintained(server, 2).keys() < before.keys(), "also after a restart"
    rows(server, "ALTER TABLE votes CHANGE story story BIGINT")
    [left] = maintained(server, 1).values()
    assert left[0] == "d.other"
    os.kill(server.status()["shards"][0]["process"], 9)
    [left] = maintained(server, 1).values()
    assert left[0] == "d.other"
    assert server.stop() == 0


def test_views_of_several_workers_that_nobody_uses_retire_unless_they_are_named(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--workers=2", "--idle-view-s=1")
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
        rows(server, "CREATE TABLE votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT, KEY (story))")
        rows(server, "CREATE VIEW counts AS SELECT story, COUNT(*) AS votes FROM votes WHERE id > 0 GROUP BY story")
        rows(server, "INSERT INTO votes (story) VALUES (1), (1), (2)")
        for sql, answer in ((COUNT, [(1, 2)]), (NAMED, [(2,)])) * 3:
            assert rows(server, sql, 1) == answer
        deadline = time.monotonic() + DEADLINE_S
        while "0 views come, 1 go" not in server.logs() and time.monotonic() < deadline:
            rows(server, "DO 0")
        [(_, named, _, _)] = maintained(server, 2).values()  # one on each shard
        assert named == "d.counts" and "0 views come, 1 go" in server.logs()
        assert rows(server, COUNT, 1) == [(1, 2)]
        rows(server, "DROP VIEW counts")
        assert all(each[1] is None for each in rows(server, "SELECT name, named_views FROM millrace.views")), "at once"
    finally:
        server.kill()


LATER = "SELECT COUNT(*) FROM votes WHERE id >= 1000 AND story > {}"
READERS = 6
QUERIES_EACH = 12
NO_PROCESS = 1 << 22
"""Beyond the highest number of a process."""


class Burst:
    """Readers with new queries, and one writer. Every answer has what was acknowledged before it was asked for, and nothing that nobody has sent."""

    def __init__(self, server: MillraceServer) -> None:
        self.server = server
        self.sent = self.acknowledged = 0
        self.answered = 0
        self.wrong: list[object] = []
        self.progress = threading.Condition()
        self._stop = threading.Event()
        self.readers = [threading.Thread(target=self._guarded, args=(self._read, reader)) for reader in range(READERS)]
        self._writer = threading.Thread(target=self._guarded, args=(self._write,))
        for each in (*self.readers, self._writer):
            each.start()

    def _guarded(self, work: Any, *arguments: int) -> None:
        try:
            work(*arguments)
        except Exception as error:
            self.wrong.append(error)
            raise

    def _write(self) -> None:
        with self.server.connect("d", read_timeout=60) as connection, connection.cursor() as cursor:
            while not self._stop.is_set():
                self.sent += 1
                cursor.execute("INSERT INTO votes (id, story) VALUES (%s, 1000)", (1000 + self.sent,))
                self.acknowledged = self.sent

    def _read(self, reader: int) -> None:
        with self.server.connect("d", read_timeout=60) as connection, connection.cursor() as cursor:
            for number in range(QUERIES_EACH):
                for _ in range(3):
                    least = self.acknowledged
                    cursor.execute(LATER.format(reader * QUERIES_EACH + number))
                    [(count,)] = cursor.fetchall()
                    if not least <= count <= self.sent:
                        self.wrong.append((reader, number, least, count, self.sent))
                    with self.progress:
                        self.answered += 1
                        self.progress.notify_all()

    def await_answers(self, count: int) -> None:
        with self.progress:
            assert self.progress.wait_for(lambda: self.answered >= count or self.wrong, DEADLINE_S)

    def end(self) -> None:
        for each in self.readers:
            each.join(DEADLINE_S)
        self._stop.set()
        self._writer.join(DEADLINE_S)


def kill_leader(server: MillraceServer) -> None:
    """One that has died before is named until another leads."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            os.kill(server.status()["leader"] or NO_PROCESS, 9)
            return
        except (ProcessLookupError, KeyError):
            assert time.monotonic() < deadline


@pytest.mark.parametrize("workers", [1, 2])
def test_a_leader_that_is_killed_in_a_burst_of_new_queries_leaves_the_program_whole(tmp_path: Path, workers: int) -> None:
    server = MillraceServer(tmp_path / "data", "--controllers=2", f"--workers={workers}", "--durability=os")
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
        rows(server, "CREATE TABLE votes (id INT PRIMARY KEY, story INT)")
        burst = Burst(server)
        for answered in (20, 120):
            burst.await_answers(answered)
            kill_leader(server)
        burst.end()
        assert not burst.wrong, burst.wrong
        queries = [LATER.format(number) for number in range(READERS * QUERIES_EACH)]
        deadline = time.monotonic() + DEADLINE_S
        while (found := rows(server, "SELECT COUNT(DISTINCT name) FROM millrace.views")) != [(len(queries),)]:
            assert time.monotonic() < deadline, found
            for sql in queries:
                assert rows(server, sql) == [(burst.acknowledged,)]
        numbers = [number for (number,) in rows(server, "SELECT number FROM millrace.transitions ORDER BY number")]
        assert numbers == sorted({*numbers}), "each happened once"
        names = {name for (name,) in rows(server, "SELECT name FROM millrace.views")}
        kill_leader(server)
        for shard in server.status()["shards"]:
            os.kill(shard["process"], 9)
        while {name for (name,) in rows(server, "SELECT name FROM millrace.views")} != names:
            assert time.monotonic() < deadline + DEADLINE_S
        for sql in queries[::10]:
            assert rows(server, sql) == [(burst.acknowledged,)]
    finally:
        server.kill()
