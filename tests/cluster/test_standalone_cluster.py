"""The same system on a real Spark standalone cluster: only the master URL differs."""

from __future__ import annotations

from pathlib import Path

import psutil

from backend.network.connections import PATIENCE_S
from tests.cluster.spark_cluster import SparkCluster
from tests.cluster.test_crashes import Writers, check, start, victims
from tests.cluster.test_serve import run
from tests.serving import MillraceServer


def test_workers_in_executors_of_a_spark_cluster_survive_kills(tmp_path: Path) -> None:
    shown = run("spark-secret", f"--data={tmp_path / 'data'}")
    assert shown.stdout.startswith("spark.authenticate true\n")
    secret = shown.stdout.split()[-1]
    with SparkCluster(tmp_path / "spark", 2, shown.stdout) as spark:
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
