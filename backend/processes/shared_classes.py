"""Archives of the classes that Spark's and ZooKeeper's JVMs load, so that a start reads them once and for all.

Loading and verifying classes is half of what a JVM computes until it serves. `python -m backend.processes.shared_classes`, which `make`
runs once after the installation, lets both start, do a little work and write the archives next to the packages. Without them, or
with those of another Java or other jars, a JVM loads its classes as ever.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from backend.processes.java import SMALL_HEAP, find_java, java_environment, shared_classes, zookeeper_command
from controller.registry import Registry

QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Classes that cannot be in an archive are many, and named one by one."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millrace-java-") as folder:
        java = find_java(Path(folder) / "java")
        if java is None:
            return
        os.environ.update(java_environment(java))
        _write("zookeeper", lambda options: _run_zookeeper(java, Path(folder), options))
        _write("spark", _run_spark)


def _write(name: str, run: Callable[[tuple[str, ...]], None]) -> None:
    """Let `run` start a JVM with the options that make it write its archive when it ends."""
    archive = shared_classes(name)
    archive.parent.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(f".{os.getpid()}")
    run((f"-XX:ArchiveClassesAtExit={made}", *QUIET))
    if made.exists():
        made.replace(archive)


def _run_zookeeper(java: Path, folder: Path, options: tuple[str, ...]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = zookeeper_command(java, folder / "zookeeper", "127.0.0.1", port, options)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        registry = Registry(f"127.0.0.1:{port}", "/classes", b"no secret")
        registry.start(30)
        registry.stop()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _run_spark(options: tuple[str, ...]) -> None:
    """What a start needs. Spark SQL is left out: all that the archive has is in memory."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster("local[2]").set("spark.ui.enabled", "false").set("spark.driver.memory", "512m")
    context = SparkContext(conf=conf.set("spark.driver.extraJavaOptions", " ".join([*SMALL_HEAP, *options])).setAppName("classes"))
    context.parallelize(range(2), 2).map(str).collect()
    gateway = context._gateway
    context.stop()
    assert gateway is not None
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()  # on which the JVM ends
    process.wait()


if __name__ == "__main__":
    main()
