"""A shard whose files are damaged: named at once, never served as if it were whole, and repaired when that is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pymysql
import pytest

from tests.serving import MillraceServer

OPTIONS = ("--workers=2", "--controllers=1")


@pytest.mark.slow
def test_a_damaged_shard_is_named_refused_and_repaired(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", *OPTIONS)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")
        for start in (0, 100, 200):
            cursor.execute("INSERT INTO d.t VALUES " + ",".join(f"({n}, {n})" for n in range(start, start + 100)))
    server.kill()
    log = max((server.data / "shards" / "1").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)

    began = time.monotonic()
    server = MillraceServer(server.data, *OPTIONS)
    try:
        assert time.monotonic() - began < 60
        assert any("shard 1 is damaged" in line and log.name in line for line in server.output), server.output
        with pytest.raises(urllib.error.HTTPError) as unhealthy:
            urllib.request.urlopen(server.request("/health"), timeout=20)
        assert unhealthy.value.code == 503
        assert log.name in json.dumps(json.load(unhealthy.value))
        with server.connect("d") as connection, connection.cursor() as cursor:
            for statement in (
                "SELECT COUNT(*) FROM t",
                "INSERT INTO t VALUES " + ",".join(f"({n}, {n})" for n in range(1000, 1010)),
                "DELETE FROM t",
            ):
                with pytest.raises(pymysql.err.Error, match=log.name) as refused:
                    cursor.execute(statement)
                assert refused.value.args[0] == 1194
        assert "shard 1 is not served" in (server.data / "logs" / "worker-1.log").read_text()
        assert repair(server.data).returncode == 1
    finally:
        server.stop()

    done = repair(server.data)
    assert done.returncode == 0 and "as of epoch" in done.stdout and "lost" in done.stdout
    server = MillraceServer(server.data, *OPTIONS)
    try:
        with server.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id, n FROM t")
            rows = cursor.fetchall()
            assert 0 < len(rows) < 300 and all(key == value for key, value in rows)
            cursor.execute("INSERT INTO t VALUES " + ",".join(f"({n}, {n})" for n in range(1000, 1010)))
            cursor.execute("SELECT COUNT(*) FROM t")
            assert cursor.fetchall() == ((len(rows) + 10,),)
    finally:
        server.stop()
    assert repair(server.data).stdout == "nothing is damaged\n"


def repair(data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "backend.cli", "repair", str(data)], capture_output=True, text=True)
