"""Slow readers of large results, with real processes: what they cost, and that it is all given back."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from tests.serving import MillraceServer
from tests.wire.raw import RawClient

DEADLINE_S = 30.0
READERS = 6
ADAPTER_GROWTH_BYTES_MAX = 120 << 20


def adapter_of(server: MillraceServer) -> psutil.Process:
    alive = [each for each in server.processes() if each.status() != psutil.STATUS_ZOMBIE]
    [found] = [each for each in alive if "adapter-0" in " ".join(each.cmdline())]
    return found


def open_scans(server: MillraceServer, wanted: int) -> int:
    """How many scans the workers have open, once they are as many as wanted or it has taken too long."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = sum(shard["open_scans"] for shard in server.status()["shards"])
        if found == wanted or time.monotonic() > deadline:
            return found


def slow_readers(tmp_path: Path, rows: int, row_bytes: int) -> None:
    server = MillraceServer(tmp_path / "data", "--workers=1", "--adapters=1")
    try:
        connection = server.connect()
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.large (id INT PRIMARY KEY, body VARCHAR(1024))")
        for start in range(0, rows, 4_000):
            values = ", ".join(f"({number}, REPEAT('{number % 10}', {row_bytes}))" for number in range(start, start + 4_000))
            cursor.execute(f"INSERT INTO d.large VALUES {values}")
        adapter = adapter_of(server)
        before = adapter.memory_info().rss
        readers = [RawClient(server.mysql_port) for _ in range(READERS)]
        for reader in readers:
            reader.command(3, b"SELECT id, body FROM d.large")
            reader.read_ok()
        assert open_scans(server, READERS) == READERS
        for number in range(100):
            cursor.execute(f"UPDATE d.large SET body = 'changed' WHERE id = {number}")
            cursor.execute(f"SELECT body FROM d.large WHERE id = {number}")
            assert cursor.fetchall() == (("changed",),)
        assert adapter.memory_info().rss - before < ADAPTER_GROWTH_BYTES_MAX
        whole, dropped, *killed = readers
        for _ in range(3):
            whole.read()
        assert len(whole.read_rows()) == rows
        dropped.__exit__()
        for reader in killed:
            number = int.from_bytes(reader.greeting.partition(b"\0")[2][:4], "little")
            cursor.execute(f"KILL {number}")
        assert open_scans(server, 0) == 0
        assert adapter.memory_info().rss - before < ADAPTER_GROWTH_BYTES_MAX
        for reader in readers:
            reader.__exit__()
        connection.close()
    finally:
        server.stop()


def test_slow_readers_cost_a_small_part_of_their_results_and_stall_no_one(tmp_path: Path) -> None:
    slow_readers(tmp_path, rows=40_000, row_bytes=1_000)


@pytest.mark.slow
def test_slow_readers_of_a_million_rows(tmp_path: Path) -> None:
    slow_readers(tmp_path, rows=1_000_000, row_bytes=200)
