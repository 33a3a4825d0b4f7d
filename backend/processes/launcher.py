"""The Spark driver: one job that holds one never-ending task per shard, and data jobs beside it.

Spark places the tasks, and runs one again when its process dies; the others never notice
(this is no barrier stage). It is a process of its own, so that neither a controller nor an
adapter that dies touches the workers. Data jobs (`backend.jobs.job_service`) have a pool and slots of their own.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from backend.processes.heartbeat import Heartbeat
from backend.processes.java import SMALL_HEAP, class_options
from backend.processes.records import begin_records
from backend.processes.settings import Deployment, own_address, spark_secret

TASK_FAILURES_MAX = 1_000_000_000
GATEWAY_CHECK_S = 0.2
SOCKET_FOLDER_BYTES_MAX = 60
"""Spark refuses a longer name: with that of the socket it has to fit into 107 bytes."""
SOCKETS_LINK = "sockets"
WORKERS_POOL, JOBS_POOL = "workers", "jobs"
POOLS = """<allocations>
  <pool name="{workers}"><schedulingMode>FIFO</schedulingMode><weight>1000</weight><minShare>{count}</minShare></pool>
  <pool name="{jobs}"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""
"""A slot that becomes free goes to a worker that waits for one."""

log = logging.getLogger(__name__)


def spark_master(master: str, shard_count: int) -> str:
    """`master` with room for all shards besides the tasks that were asked for, if it is this machine.

    In local mode the number of times a task may fail is part of the URL.
    """
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if local is None:
        return master
    cores = local.group(1) or "1"
    wanted = (os.cpu_count() or 1) if cores == "*" else int(cores)
    return f"local[{wanted + shard_count},{TASK_FAILURES_MAX}]"


def configuration(master: str, deployment: Deployment) -> SparkConf:
    scratch = deployment.data_path / "spark"
    remove_scratch(scratch)  # what one that was killed has left
    scratch.mkdir(parents=True)
    pools = scratch / "pools.xml"
    pools.write_text(POOLS.format(workers=WORKERS_POOL, jobs=JOBS_POOL, count=deployment.shard_count))
    settings = {
        "spark.master": spark_master(master, deployment.shard_count),
        "spark.app.name": "millrace",
        "spark.task.maxFailures": str(TASK_FAILURES_MAX),
        "spark.stage.maxConsecutiveAttempts": str(TASK_FAILURES_MAX),
        "spark.executor.maxNumFailures": str(TASK_FAILURES_MAX),
        "spark.speculation": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": pools.as_uri(),
        "spark.locality.wait": "0s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "false",
        "spark.python.daemon.module": "backend.jobs.task_daemon",
        "spark.local.dir": str(scratch),
        "spark.driver.memory": "512m",
        "spark.driver.maxResultSize": "128m",  # of a data job: a larger one fails, and nothing else
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.driver.extraJavaOptions": f'{" ".join([*SMALL_HEAP, *class_options("spark")])} "-Djava.io.tmpdir={scratch}"',
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        # Over TCP the process that forks workers does so for everybody who connects, before it asks for a secret.
        settings["spark.python.unix.domain.socket.enabled"] = "true"
        settings["spark.python.unix.domain.socket.dir"] = socket_folder(scratch)
    conf = SparkConf(loadDefaults=True)
    for name, value in settings.items():
        if name == "spark.master" or not conf.contains(name):
            conf.set(name, value)
    return conf


def socket_folder(scratch: Path) -> str:
    """Where Spark and its Python workers meet: a private folder with a name short enough for a socket's.

    If that is not `scratch` itself, a link in there tells who comes next what to remove.
    """
    if len(bytes(scratch)) <= SOCKET_FOLDER_BYTES_MAX:
        return str(scratch)
    made = tempfile.mkdtemp(prefix="millrace-spark-")
    (scratch / SOCKETS_LINK).symlink_to(made)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def remove_scratch(scratch: Path) -> None:
    link = scratch / SOCKETS_LINK
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)


def start_spark(master: str, deployment: Deployment) -> SparkContext:
    """A context whose driver and executors answer nobody without Spark's secret, unless Spark's own configuration has it otherwise.

    All that is known when the JVM starts is on its command line, for everybody to read. So the secret comes afterwards.
    With local[*], YARN and Kubernetes Spark makes one itself.
    """
    conf = configuration(master, deployment)
    gateway = launch_gateway(conf)
    defaults = gateway.jvm.SparkConf()
    secret = {"spark.authenticate.secret": spark_secret(deployment.secret_bytes)} if master.startswith("spark:") else {}
    for name, value in {"spark.authenticate": "true", "spark.network.crypto.enabled": "true", **secret}.items():
        if not defaults.contains(name):
            conf.set(name, value)
    return SparkContext(conf=conf, gateway=gateway)


def serve_jobs(context: SparkContext, deployment: Deployment) -> None:
    """Take data jobs, as long as the process lives."""
    from backend.jobs.job_service import JobService
    from controller.registry import Address, Registry
    from dataflow.errors import Retryable

    async def serve() -> None:
        registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
        await asyncio.to_thread(registry.start, 60.0)
        host = own_address(deployment.internal_host)
        service = JobService(context, deployment.secret_bytes, JOBS_POOL, deployment.shard_count, registry.workers)
        port = await service.serve(host)
        await asyncio.to_thread(registry.register_launcher, Address(host, port, os.getpid()))
        await asyncio.Event().wait()

    while True:
        try:
            asyncio.run(serve())
        except Retryable as error:
            log.warning("no data jobs yet: %s", error)


def run(master: str, deployment_path: str) -> None:
    deployment = Deployment.load(deployment_path)
    begin_records(deployment, "launcher")
    sign = Heartbeat(deployment.secret_bytes, "launcher")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    context = start_spark(master, deployment)
    context.setLogLevel("WARN")
    log.info("Spark %s is up at %s", context.version, context.master)

    fields = asdict(deployment)

    def work(shards: Iterable[int]) -> Iterator[int]:
        from backend.processes.worker_process import run_worker  # the launcher itself needs nothing of it

        for shard in shards:
            run_worker(shard, Deployment(**fields))
            yield shard

    def run_job() -> None:
        try:
            context.setLocalProperty("spark.scheduler.pool", WORKERS_POOL)
            shards = context.parallelize(range(deployment.shard_count), deployment.shard_count)
            shards.mapPartitions(work).collect()
        except Exception:
            log.exception("the job that holds the workers ended")
        ended.set()

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    threading.Thread(target=run_job, name="workers", daemon=True).start()
    threading.Thread(target=serve_jobs, args=(context, deployment), name="jobs", daemon=True).start()
    while not ended.wait(GATEWAY_CHECK_S):
        # Without its JVM this process has nothing left to do but make room for its successor.
        gateway = context._gateway
        if gateway is None or gateway.proc.poll() is not None:
            log.error("Spark's JVM is gone")
            os._exit(1)
        gateway.jvm.System.nanoTime()  # one that does not answer is as good as none
        sign.beat()
    context.cancelAllJobs()
    context.stop()
