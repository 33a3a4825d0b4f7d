"""The program survives: what was maintained is maintained again, by new workers and in a new cluster, unasked."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from controller.program import MaintainedQuery, Program
from controller.registry import Registry
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


def check_large_queries(server: MillraceServer) -> None:
    """What does not fit into one znode is in several, and leaves none behind."""
    registry = Registry(server.deployment().zookeeper, "millrace", server.deployment().secret_bytes)
    registry.start()
    try:
        program = Program(registry)
        before = program.load()
        large = MaintainedQuery(b"large", b"x" * 1_500_000, (0,), (), ((1, 1),), ("d.v",), 1.0)
        program.record(large)
        program.record(large)
        assert sorted(program.load(), key=lambda each: each.name) == sorted([*before, large], key=lambda each: each.name)
        program.forget([large.name])
        assert program.names() == {each.name for each in before}
        assert len(registry.client.get_children(registry.path("program"))) == len(before)
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

    check_large_queries(server)

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
        while "retires" not in server.logs() and time.monotonic() < deadline:
            rows(server, "DO 0")
        [(_, named, _, _)] = maintained(server, 2).values()  # one on each shard
        assert named == "d.counts" and "retires" in server.logs()
        assert rows(server, COUNT, 1) == [(1, 2)]
        rows(server, "DROP VIEW counts")
        assert all(each[1] is None for each in rows(server, "SELECT name, named_views FROM millrace.views")), "at once"
    finally:
        server.kill()
