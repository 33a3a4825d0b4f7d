"""A stranger on all ports, and as another user of the machine, gets nothing, changes nothing and holds up nobody.

The machine that runs the tests is shared, so how long a reader waits is compared with how long it waits without the stranger,
or with how long a process waits that has nothing to do with any server.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pymysql
import pytest

from backend.processes.settings import spark_secret
from controller.derived_keys import derived_key
from tests.adversary.java_heap import live_bytes
from tests.serving import MillraceServer

PASSWORD = "not to be guessed"
ROWS = 100
GROWTH_BYTES_MAX = 48 << 20
"""What a process may grow by in the short run: the first connections take pools and buffers that stay."""
HALF_S = 300.0
FLAT_BYTES_MAX = 4 << 20
"""By so much a process may be larger in the last minute of the long run than in the last minute of its first half."""
SAMPLE_S = 2.0
SETTLED_SAMPLES = 30
STALL_S = 0.1
READ_PROCESSES = 4
"""A read wakes so many processes one after the other, and each may have to wait for a processor."""
SLEEPER = """
import sys, threading, time
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
latest = 0.0
while not ended.is_set():
    due = time.perf_counter() + 0.002
    time.sleep(0.002)
    latest = max(latest, time.perf_counter() - due)
print(latest)
"""
NOISE_FACTOR = 4
"""How much longer than without the stranger the slowest of a hundred reads may take in the short run, on a busy machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    data = tmp_path_factory.mktemp("adversary") / "data"
    (data / "shards").mkdir(parents=True)
    (data / "logs").mkdir()
    (data / "logs" / "from-before.log").write_text("")
    for path in (data.parent.parent, data.parent, data, *data.rglob("*")):
        path.chmod(0o644 if path.is_file() else 0o755)
    server = MillraceServer(data, "--controllers=1", "--workers=2")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER USER root@localhost IDENTIFIED BY '{PASSWORD}'")
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))")
        cursor.execute("INSERT INTO d.t VALUES " + ", ".join(f"({number}, 'v{number}')" for number in range(ROWS)))
    yield server
    server.kill()


def connection_to(server: MillraceServer) -> pymysql.connections.Connection[Any]:
    return server.connect("d", password=PASSWORD)


def doors(server: MillraceServer) -> list[tuple[str, str, int]]:
    """Every port on which a process of the cluster listens, by kind."""
    kinds = {"adapter": "mysql", "controller": "internal", "worker": "internal", "launcher": "internal", "http": "http", "zookeeper": "zookeeper"}
    names = {process: name for name, process in named(server).items()}
    found = {}
    for process in sorted(server.processes(), key=lambda process: process.pid not in names):
        with contextlib.suppress(psutil.NoSuchProcess):
            unnamed = "spark" if process.name() == "java" else "unknown"
            kind = kinds[names[process.pid].partition("-")[0]] if process.pid in names else unnamed
            for each in process.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN:
                    found.setdefault((each.laddr.ip.removeprefix("::ffff:"), each.laddr.port), kind)
    return sorted((kind, host, port) for (host, port), kind in found.items())


class Reader:
    """Somebody else's point reads, one after the other, and how long each took: in a process of its own, as this one has other work."""

    def __init__(self, server: MillraceServer) -> None:
        order = {"host": server.host, "port": server.mysql_port, "password": PASSWORD, "rows": ROWS}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.adversary.reader", json.dumps(order)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def stop(self) -> list[float]:
        output, _ = self._process.communicate("")
        assert self._process.returncode == 0
        took_s: list[float] = json.loads(output)
        return took_s


class Sleeper:
    """How late a process of this machine wakes up that has nothing to do with any server."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def stop(self) -> float:
        return float(self._process.communicate("")[0])


def memory(server: MillraceServer) -> dict[str, int]:
    """The resident bytes of every process, by name."""
    names = {process: name for name, process in named(server).items()}
    found = {}
    for process in (psutil.Process(server.process.pid), *server.processes()):
        with contextlib.suppress(psutil.NoSuchProcess):
            found[names.get(process.pid) or f"{process.name()} {process.pid}"] = process.memory_info().rss
    return found


def is_java(name: str) -> bool:
    """Its resident memory becomes what -Xmx allows, sooner or later, whatever is alive in it."""
    return name == "zookeeper" or name.startswith("java")


def java_processes(server: MillraceServer) -> dict[str, int]:
    return {" ".join(process.cmdline())[-60:]: process.pid for process in server.processes() if process.name() == "java"}


class MemorySamples:
    """The resident bytes of every Python process, all the time; and what Java's keep alive, whenever it is asked."""

    def __init__(self, server: MillraceServer) -> None:
        self._server = server
        self._java = java_processes(server)
        self._until_stopped = threading.Event()
        self._samples: list[dict[str, int]] = []
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._until_stopped.wait(SAMPLE_S):
            self._samples.append(memory(self._server))

    def settled(self) -> dict[str, int]:
        """The least of the last minute: what is taken and given back, or is garbage for a while, is no growth."""
        last = self._samples[-SETTLED_SAMPLES:]
        names = [name for name in last[-1] if not is_java(name)]
        found = {name: min(each[name] for each in last if name in each) for name in names}
        return found | {name: live_bytes(process) for name, process in self._java.items()}

    def stop(self) -> None:
        self._until_stopped.set()
        self._thread.join()


def read_alone(server: MillraceServer, seconds: float) -> list[float]:
    reader = Reader(server)
    threading.Event().wait(seconds)
    return reader.stop()


def let_in(server: MillraceServer, seconds: float, files: list[str]) -> subprocess.Popen[str]:
    order = {"seconds": seconds, "doors": doors(server), "files": files}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.adversary.stranger", json.dumps(order)], stdout=subprocess.PIPE, text=True
    )


def told(stranger: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = stranger.communicate()
    assert stranger.returncode == 0
    found: dict[str, Any] = json.loads(output)
    return found


def named(server: MillraceServer) -> dict[str, int]:
    return {each["name"]: each["process"] for each in server.status()["processes"]}


def check_nothing_has_changed(server: MillraceServer, processes: dict[str, int]) -> None:
    """And nobody was busy with the stranger for long, in processor time, which is what it is on a busy machine, too."""
    assert named(server) == processes, "a process was replaced"
    assert server.status()["ready"]
    with connection_to(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT v) FROM t")
        assert cursor.fetchone() == (ROWS, ROWS)
        cursor.execute("SHOW TABLES")
        assert cursor.fetchall() == (("t",),)
        cursor.execute("CREATE TABLE u (id INT PRIMARY KEY)")
        cursor.execute("DROP TABLE u")
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Millrace_loop_hold_max_ms'")
        [(_, adapter_ms)] = cursor.fetchall()
    held_ms = [float(adapter_ms), *(shard["longest_hold_ms"] for shard in server.status()["shards"])]
    assert max(held_ms) < 1000 * STALL_S, held_ms


def places(server: MillraceServer) -> list[str]:
    """What belongs to the cluster on this machine, besides its ports."""
    own = [f"/proc/{process.pid}/{name}" for process in server.processes() for name in ("environ", "mem", "fd")]
    return [str(server.data), "/dev/shm/millrace-*", *own]


def test_nobody_else_can_read_a_file_of_the_cluster(server: MillraceServer) -> None:
    """Although the folders were open when it started."""
    open_ones = [path for path in (server.data, *server.data.rglob("*")) if path.lstat().st_mode & 0o077 and not path.is_symlink()]
    assert not open_ones
    assert (server.data / "shards" / "0").exists()


def test_no_secret_is_on_a_command_line(server: MillraceServer) -> None:
    secret = server.deployment().secret_bytes
    purposes = ("internal connections", "ZooKeeper's credential", "content of ZooKeeper's nodes", "status over HTTP")
    secrets = [secret.hex(), spark_secret(secret), *(derived_key(secret, purpose).hex() for purpose in purposes)]
    everybody_sees = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in everybody_sees if any(each in command for each in secrets)]


def test_all_doors_are_on_loopback_and_known(server: MillraceServer) -> None:
    found = doors(server)
    assert {host for _, host, _ in found} == {"127.0.0.1"}
    assert {kind for kind, _, _ in found} == {"http", "internal", "mysql", "spark", "zookeeper"}
    assert len([kind for kind, _, _ in found if kind == "internal"]) == 4, "a controller, two workers and the launcher"


def test_a_stranger_gets_nothing_and_holds_up_nobody(server: MillraceServer) -> None:
    alone = read_alone(server, 3)
    processes, before = named(server), memory(server)
    stranger = let_in(server, 10, places(server))
    reader = Reader(server)
    found = told(stranger)
    beside = reader.stop()
    assert not found["findings"]
    assert len(found["tried"]) >= 20 and min(found["tried"].values()) > 0
    check_nothing_has_changed(server, processes)
    slowest_alone, slowest_beside = (statistics.quantiles(took_s, n=100)[-1] for took_s in (alone, beside))
    assert slowest_beside < max(STALL_S, NOISE_FACTOR * slowest_alone), (slowest_alone, slowest_beside)
    grown = {name: size - before[name] for name, size in memory(server).items() if not is_java(name)}
    assert max(grown.values()) < GROWTH_BYTES_MAX, grown


@pytest.mark.slow
def test_a_stranger_gets_nothing_in_ten_minutes(server: MillraceServer) -> None:
    processes = named(server)
    reader, samples, sleeper = Reader(server), MemorySamples(server), Sleeper()
    try:
        assert not told(let_in(server, HALF_S, places(server)))["findings"]
        settled = samples.settled()
        assert not told(let_in(server, HALF_S, places(server)))["findings"]
        grown = {name: size - settled[name] for name, size in samples.settled().items()}
    finally:
        samples.stop()
        took_s, late_s = reader.stop(), sleeper.stop()
    check_nothing_has_changed(server, processes)
    assert len(grown) >= 9, "two Java processes, and seven of Python"
    assert max(grown.values()) < FLAT_BYTES_MAX, grown
    assert max(took_s) < STALL_S + READ_PROCESSES * late_s, (max(took_s), late_s)
