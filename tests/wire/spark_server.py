"""Real workers in one event loop, and Spark beside them in this process: data jobs go the way they go in a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.jobs.data_jobs import DataJobs
from backend.jobs.job_service import JobService
from controller.registry import Address
from tests.wire.worker_server import SECRET, WorkerServer

ROOT = Path(__file__).parents[2]


def spark_context() -> Any:
    """With two slots, and tasks that may fail often, as the launcher has them."""
    from pyspark import SparkConf, SparkContext

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.master": "local[2,1000]", "spark.app.name": "test", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
        "spark.scheduler.mode": "FAIR", "spark.ui.showConsoleProgress": "false",
    }  # fmt: skip
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    return SparkContext(conf=conf)


class SparkServer(WorkerServer):
    """A server whose data jobs are done by Spark."""

    def begin_jobs(self, context: Any) -> None:
        self._places = dict(self.cluster.addresses)
        service = JobService(context, SECRET, "jobs", 0, lambda: self._places)
        address = Address("127.0.0.1", self.wait_for(service.serve("127.0.0.1")))

        async def found() -> Address:
            return address

        self.cluster.jobs = DataJobs(self.cluster, found, SECRET)

    def move_workers(self, addresses: dict[int, Address]) -> None:
        """Where jobs are told that the shards are."""
        self._places = addresses


@contextmanager
def spark_server(folder: Path, context: Any, **options: Any) -> Iterator[SparkServer]:
    with SparkServer(folder, **options) as server:
        server.begin_jobs(context)
        yield server
        server.wait_for(server.stop_worker())
        server.call(server.cluster.close)
