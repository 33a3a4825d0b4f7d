"""A real Spark standalone cluster on this machine, from the pip package: a master and workers."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
from pathlib import Path

import pyspark

START_TIMEOUT_S = 60


class SparkCluster:
    """One master and `workers` workers of so many cores each, all with this spark-defaults.conf. Use it as a context manager."""

    def __init__(self, folder: Path, workers: int, cores: int, configuration: str) -> None:
        self._folder = folder
        (folder / "conf").mkdir(parents=True)
        (folder / "conf" / "spark-defaults.conf").write_text(configuration)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        master = "org.apache.spark.deploy.master.Master"
        worker = "org.apache.spark.deploy.worker.Worker"
        self._processes = [
            self._start("master", "Started daemon", master, "--port", str(port), "--webui-port", "0")
        ]
        for number in range(workers):
            place = ["--work-dir", str(folder / f"work-{number}"), "--webui-port", "0"]
            self._processes.append(
                self._start(
                    f"worker-{number}",
                    "Successfully registered",
                    worker,
                    "-c",
                    str(cores),
                    "-m",
                    "1G",
                    *place,
                    self.master,
                )
            )

    def _start(self, name: str, sign: str, main: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a daemon and wait until its log shows `sign`."""
        home = Path(pyspark.__file__).parent
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["SPARK_CONF_DIR"] = str(self._folder / "conf")
        environment["SPARK_DAEMON_JAVA_OPTS"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        environment["SPARK_DAEMON_MEMORY"] = "256m"
        process = subprocess.Popen(
            [str(home / "bin/spark-class"), main, "--host", "127.0.0.1", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL),
        )
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if sign in line:
                # Let it go on logging without filling the pipe.
                subprocess.Popen(
                    ["cat"], stdin=process.stderr, stdout=(self._folder / f"{name}.log").open("w")
                )
                return process
        raise RuntimeError(f"Spark's {name} did not start:\n{''.join(lines)}")

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
