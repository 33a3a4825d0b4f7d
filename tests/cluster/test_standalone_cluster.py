"""The same system on a real Spark standalone cluster: only the master URL differs."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from backend.cli import main
from backend.network.connections import PATIENCE_S
from tests.cluster.spark_cluster import SparkCluster
from tests.cluster.test_crashes import Writers, check, start, victims
from tests.cluster.test_serve import run
from tests.serving import MillraceServer


@pytest.mark.slow
def test_data_jobs_are_done_in_the_executors_beside_the_workers(tmp_path: Path) -> None:
    configuration = run("spark-secret", f"--data={tmp_path / 'data'}").stdout
    with SparkCluster(tmp_path / "spark", 2, 2, configuration) as spark:
        server = MillraceServer(tmp_path / "data", "--workers=2", f"--master={spark.master}", "--spark-rows=500")
        try:
            fill_tables(server)
            check_large_query(server, 588, 29_320)
            verified = CliRunner().invoke(main, ["verify", f"--url=mysql://root@{server.host}:{server.mysql_port}/jobs"])
            assert verified.exit_code == 0 and "by Spark: all right" in verified.output, verified.output
            psutil.Process(server.status()["shards"][0]["process"]).kill()
            check_large_query(server, 560, 28_000)
            assert server.stop() == 0
        finally:
            server.kill()


def fill_tables(server: MillraceServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE jobs")
        cursor.execute("USE jobs")
        cursor.execute("CREATE TABLE stories (id INT PRIMARY KEY, author INT)")
        cursor.execute("CREATE TABLE votes (id INT PRIMARY KEY, story INT, weight DECIMAL(6, 2), KEY (story))")
        cursor.execute("CREATE VIEW counts AS SELECT story, COUNT(*) AS n, SUM(weight) AS weight FROM votes GROUP BY story")
        cursor.execute(f"INSERT INTO stories VALUES {','.join(f'({n}, {n % 7})' for n in range(600))}")
        cursor.execute(f"INSERT INTO votes VALUES {','.join(f'({n}, {n % 600}, {n % 10}.5)' for n in range(6000))}")
        for story in (*range(50), *range(50)):
            cursor.execute(f"SELECT * FROM counts WHERE story = {story}")
            assert cursor.fetchall()[0][1] == 10


def check_large_query(server: MillraceServer, stories: int, weight: int) -> None:
    with server.connect("jobs") as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT s.author, COUNT(*), SUM(v.weight) FROM stories s JOIN votes v ON v.story = s.id WHERE s.id < {stories} GROUP BY s.author ORDER BY 1")
        found = cursor.fetchall()
        assert [(author, count) for author, count, _ in found] == [(n, 10 * stories // 7) for n in range(7)]
        assert sum(each for *_, each in found) == weight
        cursor.execute("SHOW WARNINGS")
        assert not cursor.fetchall(), "Spark has done it"


@pytest.mark.slow
def test_workers_in_executors_of_a_spark_cluster_survive_kills(tmp_path: Path) -> None:
    shown = run("spark-secret", f"--data={tmp_path / 'data'}")
    assert shown.stdout.startswith("spark.authenticate true\n")
    secret = shown.stdout.split()[-1]
    with SparkCluster(tmp_path / "spark", 2, 1, shown.stdout) as spark:
        server = start(tmp_path / "data", f"--master={spark.master}")
        try:
            for shard in server.status()["shards"]:
                commands = [
                    " ".join(parent.cmdline()) for parent in psutil.Process(shard["process"]).parents()
                ]
                assert any("CoarseGrainedExecutorBackend" in command for command in commands)
            everybody_sees = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
            assert not [command for command in everybody_sees if secret in command]
            writers = Writers(server)
            try:
                writers.await_more(20)
                for name in ("worker-0", "worker-1", "adapter-0"):
                    psutil.Process(victims(server)[name]).kill()
                    took_s = writers.await_more(20)
                    assert took_s < PATIENCE_S or not name.startswith("worker"), f"{name} took {took_s:.1f} s"
                executor = next(
                    parent
                    for parent in psutil.Process(victims(server)["worker-0"]).parents()
                    if "CoarseGrainedExecutorBackend" in " ".join(parent.cmdline())
                )
                executor.kill()
                writers.await_more(20)
            finally:
                writers.finish()
            check(server, writers)
            assert server.stop() == 0
            server = MillraceServer(
                tmp_path / "data", "--workers=2", "--adapters=2", f"--master={spark.master}"
            )
            check(server, writers)
        finally:
            server.kill()
