"""Streams of the data source `millrace`: what is read as it changes, and written batch by batch, each once."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
from pyspark.errors import StreamingQueryException

from tests.cluster.test_spark import ROOT, execute, spark, url
from tests.serving import MillraceServer

__all__ = ["spark"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = ("worker", "query", "worker", "query", "driver") * 4
COUNTS = "SELECT story, n FROM counts WHERE n > 0 ORDER BY story"
VIEW = "SELECT story, n FROM votes_of_story ORDER BY story"


@pytest.fixture
def server(d_server: MillraceServer) -> MillraceServer:
    return d_server


def changes(spark: Any, server: MillraceServer, table: str, **options: str) -> Any:
    stream = spark.readStream.format("millrace").option("url", url(server)).option("dbtable", table)
    return stream.option("changes", "true").options(**options).load()


def run(stream: Any, server: MillraceServer, table: str, checkpoint: Path, mode: str = "append", **options: str) -> None:
    """Everything that has changed by now, batch by batch."""
    query = stream.writeStream.format("millrace").option("url", url(server)).option("dbtable", table).outputMode(mode)
    query.options(**options).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def lose_last_commit(checkpoint: Path) -> None:
    """As if the driver had died after the sink's commit and before Spark's: the batch is run again."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()


def test_a_count_that_a_stream_keeps_is_that_of_the_view(spark: Any, server: MillraceServer, tmp_path: Path) -> None:
    execute(
        server,
        "CREATE TABLE votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL)",
        "CREATE VIEW votes_of_story AS SELECT story, COUNT(*) AS n FROM votes GROUP BY story",
        "CREATE TABLE counts (story INT PRIMARY KEY, n BIGINT)",
        "CALL millrace.keep_changes('votes')",
        "CALL millrace.keep_changes('votes_of_story')",
    )

    def count() -> None:
        kept = changes(spark, server, "votes", startingEpoch="earliest", maxRowsPerTrigger="12").groupBy("story").sum("millrace_weight")
        run(kept.toDF("story", "n"), server, "counts", tmp_path / "counts", "complete")

    execute(server, "INSERT INTO votes (story) VALUES (1), (1), (2)", "UPDATE votes SET story = 3 WHERE id = 1")
    count()
    assert execute(server, COUNTS) == execute(server, VIEW) == [(1, 1), (2, 1), (3, 1)]
    execute(server, *[f"INSERT INTO votes (story) VALUES ({n % 5}), ({n % 3})" for n in range(10)], "DELETE FROM votes WHERE story = 2")
    lose_last_commit(tmp_path / "counts")
    execute(server, "INSERT INTO votes (story) VALUES (9)")
    log = changes(spark, server, "votes_of_story", startingEpoch="earliest")
    run(log, server, "log", tmp_path / "log")
    count()
    assert execute(server, COUNTS) == execute(server, VIEW)
    assert execute(server, "SELECT story, SUM(n * millrace_weight) AS n FROM log GROUP BY story HAVING n > 0 ORDER BY story") == execute(server, VIEW)
    assert not execute(server, "SHOW TABLES LIKE 'millrace_staged%'")
    execute(server, "DROP TABLE counts, log", "DROP VIEW votes_of_story", "DROP TABLE votes")


def test_a_batch_that_is_run_again_is_written_once_and_a_lost_position_is_said(spark: Any, server: MillraceServer, tmp_path: Path) -> None:
    execute(
        server,
        "CREATE TABLE events (id INT PRIMARY KEY, what VARCHAR(10), at DATETIME)",
        "CREATE TABLE copied (id INT, what VARCHAR(10), at DATETIME)",
        "CALL millrace.keep_changes('events', 3600, 1000)",
    )
    plain = spark.readStream.format("millrace").option("url", url(server)).option("dbtable", "events").option("timeZone", "UTC")
    events = plain.option("startingEpoch", "earliest").load()
    run(events, server, "copied", tmp_path / "copy", timeZone="UTC")
    execute(server, "INSERT INTO events VALUES (1, 'one', '2026-01-02 03:04:05'), (2, NULL, NULL)")
    run(events, server, "copied", tmp_path / "copy", timeZone="UTC")
    lose_last_commit(tmp_path / "copy")
    run(events, server, "copied", tmp_path / "copy", timeZone="UTC")
    assert execute(server, "SELECT * FROM copied ORDER BY id") == execute(server, "SELECT * FROM events ORDER BY id")
    execute(server, "DELETE FROM events WHERE id = 2")
    with pytest.raises(StreamingQueryException, match="changes=true"):
        run(events, server, "copied", tmp_path / "copy", timeZone="UTC")
    execute(server, *[f"REPLACE INTO events VALUES ({n}, 'filler', NULL)" for n in range(50, 120)])
    while not execute(server, "SELECT 1 FROM millrace.feeds WHERE name = 'd.events' AND bytes <= 1000"):
        pass
    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        run(events, server, "copied", tmp_path / "copy", timeZone="UTC")
    going_on = plain.option("failOnDataLoss", "false").option("startingEpoch", "earliest").load()
    run(going_on, server, "copied", tmp_path / "copy", timeZone="UTC")
    assert execute(server, "SELECT MAX(id) FROM copied") == [(119,)]
    execute(server, "DROP TABLE copied, events")


class StreamDriver:
    """The process of `stream_driver.py`, started again whenever it is gone."""

    def __init__(self, server: MillraceServer, folder: Path) -> None:
        self._command = [sys.executable, str(ROOT / "tests" / "cluster" / "stream_driver.py"), url(server), str(folder / "checkpoint")]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "millrace")])
        self._environment = os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        self._log = (folder / "driver.log").open("ab")
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, env=self._environment, stdout=subprocess.PIPE, stderr=self._log)

    def wait_for_batch(self) -> None:
        """Until it has told of another batch that is done."""
        assert self._process.stdout is not None
        while not self._process.stdout.readline():
            self.kill()
            self._start()

    def kill_query(self) -> None:
        """The Python processes that read and write for it: Spark ends the query, the driver starts it again."""
        found = psutil.Process(self._process.pid).children(recursive=True)
        _kill([each for each in found if "python" in each.name() and not each.children()])

    def kill(self) -> None:
        found = psutil.Process(self._process.pid)
        _kill([*found.children(recursive=True), found])
        self._process.wait()

    def restart(self) -> None:
        self.kill()
        self._start()


def _kill(processes: list[psutil.Process]) -> None:
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()


def test_a_count_equals_the_view_after_kills_of_the_query_of_workers_and_of_the_driver(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--workers=2")
    random = Random(5)
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
        execute(
            server,
            "CREATE TABLE votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL)",
            "CREATE VIEW votes_of_story AS SELECT story, COUNT(*) AS n FROM votes GROUP BY story",
            "CREATE TABLE counts (story INT PRIMARY KEY, n BIGINT)",
            "CALL millrace.keep_changes('votes')",
        )
        driver = StreamDriver(server, tmp_path)
        try:
            for number, kill in enumerate(KILLS):
                inserts = [f"INSERT INTO votes (story) VALUES ({random.randrange(9)}), ({random.randrange(9)})" for _ in range(20)]
                deletes = [f"DELETE FROM votes WHERE id = {random.randrange(1 + 40 * number, 41 + 40 * number)}" for _ in range(20)]
                execute(server, *[statement for pair in zip(inserts, deletes) for statement in pair])
                if kill == "worker":
                    os.kill(server.status()["shards"][number // 2 % 2]["process"], 9)
                    continue
                driver.wait_for_batch()  # so it is in the middle of its work, and does not only start
                driver.kill_query() if kill == "query" else driver.restart()
            execute(server, "INSERT INTO votes (story) VALUES (10)")
            while execute(server, COUNTS) != execute(server, VIEW):
                driver.wait_for_batch()
            assert execute(server, "SELECT SUM(n) FROM counts") == execute(server, "SELECT COUNT(*) FROM votes")
        finally:
            driver.kill()
    finally:
        server.stop()
