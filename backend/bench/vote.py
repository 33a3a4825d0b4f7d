"""`millrace bench vote`: the vote benchmark of the Noria paper (section 8.2), on millrace and on others.

Every system gets the same load from the same processes (apps/vote): stories are read by id with
their votes counted, and voted for. The figure is the throughput that keeps the 95th percentile of the
sojourn times, of reads and of votes, under a bound; beside it stands what the server's processes spend on a request.

As in the paper nothing waits for the disk unless `--durable`: MariaDB's counted stories are in
MEMORY tables then, and the others leave writing to the operating system. memcached and Redis keep no votes, only counts.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.load_search import LoadPoint, best, climb
from backend.bench.mariadb import mariadb
from backend.bench.options import option
from backend.bench.servers import MeasuredServer, memcached, millrace, redis
from backend.bench.vote_crowd import Crowd, CrowdSize

SYSTEMS = {
    "millrace client": ("millrace",),
    "millrace MySQL": ("millrace",),
    "MariaDB counter": ("mariadb",),
    "MariaDB counter, tree": ("mariadb",),
    "MariaDB natural": ("mariadb",),
    "MariaDB + memcached": ("mariadb", "memcached"),
    "memcached": ("memcached",),
    "Redis": ("redis",),
}
"""By the names of apps.vote.clients: the servers that each needs."""
PACKAGES = {"mariadb": "mariadb-server-core", "memcached": "memcached", "redis": "redis-server"}
DRIVERS = {"millrace MySQL": "MySQLdb", "MariaDB": "MySQLdb", "Redis": "hiredis"}
METRICS: tuple[tuple[str, str, Callable[[LoadPoint], float]], ...] = (
    ("throughput", "requests/s", lambda point: point.answered),
    ("server_cpu", "µs/request", lambda point: point.server_cpu_us),
    ("client_cpu", "µs/request", lambda point: point.client_cpu_us),
)
QUICK = ("millrace client", "millrace MySQL", "MariaDB counter", "MariaDB natural")


@dataclass(frozen=True, slots=True)
class Options:
    systems: str = option("all", "which ones, separated by semicolons: " + "; ".join(SYSTEMS))
    mixes: str = option("95/5,50/50", "percentages of reads and votes")
    keys: str = option("zipf,uniform", "how stories are chosen")
    stories: int = option(500_000, "number of stories")
    readers: int = option(2, "processes that read")
    voters: int = option(1, "processes that vote")
    batch: int = option(10_000, "most requests in one batch")
    warm_s: float = option(0.4, "seconds of each load before the measurement")
    measure_s: float = option(2.0, "seconds that each load is measured")
    start_rate: int = option(16_000, "requests/s to begin with")
    rate_max: int = option(64_000_000, "the highest requests/s to try")
    refinements: int = option(3, "loads tried between the last that was carried and the first that was not")
    attempts: int = option(2, "a load is too much if it was so as many times")
    bound_ms: float = option(100.0, "what the 95th percentile has to stay below")
    adapters: int = option(1, "millrace's processes that speak MySQL")
    durable: bool = option(False, "acknowledged votes are on disk, where the system can do that")
    quick: bool = option(False, "a smoke test: few stories, short loads, millrace and MariaDB only")
    output: str = option("bench-results", "the folder for vote.json and the plots vote.png and vote.svg")


@dataclass(frozen=True, slots=True)
class Case:
    system: str
    mix: str
    keys: str
    points: tuple[LoadPoint, ...]


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    if options.quick:
        options = replace(
            options, mixes="95/5", keys="zipf", stories=2_000, warm_s=0.1, measure_s=0.2, rate_max=4_000, refinements=0, attempts=1, readers=1,
            systems=";".join(QUICK) if options.systems == "all" else options.systems,
        )  # fmt: skip
    cases: list[Case] = []
    systems = list(SYSTEMS) if options.systems == "all" else options.systems.split(";")
    for number, system in enumerate(systems):
        with _started(SYSTEMS[system], options) as started:
            if started is not None and _has_driver(system):
                cases += _cases(system, *started, options, partial(_say, advance, number / len(systems)))
                _write(cases, options)
    yield from measurements(cases, options.bound_ms)


def _say(advance: Advance, done: float, what: str) -> None:
    advance(what, done)


def measurements(cases: list[Case], bound_ms: float) -> Iterator[Measurement]:
    """For each mix and choice of keys what the first system reaches, with the others beside it."""
    for keys, mix in dict.fromkeys((case.keys, case.mix) for case in cases):
        found = {case.system: best(case.points, bound_ms) for case in cases if (case.keys, case.mix) == (keys, mix)}
        reached = {system: point for system, point in found.items() if point is not None}
        for metric, unit, value in METRICS if reached else ():
            first, *others = [(system, value(point)) for system, point in reached.items()]
            yield Measurement("vote", f"{metric} {mix} {keys}", first[1], unit, dict(others))


def _cases(
    system: str, address: dict[str, Any], servers: list[MeasuredServer], options: Options, advance: Callable[[str], None]
) -> Iterator[Case]:
    size = CrowdSize(options.readers, options.voters, options.batch)
    for number, keys in enumerate(options.keys.split(",")):
        with closing(Crowd(system, address, options.stories, keys, size)) as crowd:
            if number == 0:
                advance(f"{system}: loading stories")
                crowd.do("prepare")
                advance(f"{system}: reading every story once")
                crowd.do("read_all")
            for mix in options.mixes.split(","):
                yield Case(system, mix, keys, _points(crowd, system, mix, servers, options, advance))


def _points(
    crowd: Crowd, system: str, mix: str, servers: list[MeasuredServer], options: Options, advance: Callable[[str], None]
) -> tuple[LoadPoint, ...]:
    reads, votes = map(float, mix.split("/"))

    def measure(rate: float) -> LoadPoint:
        advance(f"{system}: {mix} at {rate:,.0f}/s")
        return crowd.measure(
            rate,
            votes / (reads + votes),
            options.warm_s,
            options.measure_s,
            lambda: sum(each.cpu_s() for each in servers),
        )

    rates = (options.start_rate, options.rate_max)
    return tuple(climb(measure, rates, options.bound_ms, options.refinements, options.attempts))


def _has_driver(system: str) -> bool:
    driver = next((driver for name, driver in DRIVERS.items() if system.startswith(name)), "json")
    found = importlib.util.find_spec(driver) is not None
    if not found:
        print(f"{system} is left out: the Python package {driver} is not installed", file=sys.stderr)
    return found


@contextmanager
def _started(wanted: Sequence[str], options: Options) -> Iterator[tuple[dict[str, Any], list[MeasuredServer]] | None]:
    """The address of servers as their clients want it, and the servers; None if one is not installed."""
    with scratch() as folder, ExitStack() as stack:
        servers: dict[str, MeasuredServer | None] = {}
        if "millrace" in wanted:
            durability = "fsync" if options.durable else "os"
            flags = [f"--durability={durability}", f"--adapters={options.adapters}", "--controllers=1"]
            servers["millrace"] = stack.enter_context(millrace(folder / "millrace", *flags))
        if "mariadb" in wanted:
            flags = [] if options.durable else ["--innodb-flush-log-at-trx-commit=2"]
            port = stack.enter_context(mariadb(folder, *flags))
            pid = None if port is None else int((folder / "m.pid").read_text())
            servers["mariadb"] = None if port is None or pid is None else MeasuredServer(port, pid)
        if "memcached" in wanted:
            servers["memcached"] = stack.enter_context(memcached())
        if "redis" in wanted:
            servers["redis"] = stack.enter_context(redis())
        missing = [PACKAGES[name] for name, server in servers.items() if server is None]
        if missing:
            print(f"{' and '.join(wanted)} are left out: apt-get install {' '.join(missing)}", file=sys.stderr)
            yield None
            return
        address: dict[str, Any] = {"data": str(folder / "millrace"), "durable": options.durable}
        for name, server in servers.items():
            if server is not None:
                address["mysql_port" if name in ("millrace", "mariadb") else f"{name}_port"] = server.port
        yield address, [each for each in servers.values() if each is not None]


def _write(cases: list[Case], options: Options) -> None:
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    found = {"options": asdict(options), "cases": [asdict(case) for case in cases]}
    (folder / "vote.json").write_text(json.dumps(found, indent=1))
    if importlib.util.find_spec("matplotlib") is not None:
        from backend.bench.vote_plot import plot_cases

        plot_cases(cases, options.bound_ms, folder)
