"""`millrace bench lobsters`: the pages of Lobsters (section 8.1 of the Noria paper) on millrace and on MariaDB.

Every server gets the same requests from the same processes (apps/lobsters). `baseline` statements read counters that
the application keeps by hand, `natural` ones compute everything they show. Without `--rate` the highest rate of
pages is looked for that keeps the 95th percentile of the sojourn under a bound; beside it stands what the server's
processes spend on a page, and their memory. `--check` instead compares every answer of a sequence of requests.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.load_search import best, climb
from backend.bench.lobsters_memory import MemoryPoint, memory_experiments, plot, written
from backend.bench.lobsters_soak import CHECKED_PAGES, compared_at_the_end, soak
from backend.bench.lobsters_users import LobstersUsers, PageLoad
from backend.bench.mariadb import mariadb
from backend.bench.options import option
from backend.bench.servers import MeasuredServer, millrace

DATABASE = "lobsters"
CASES = ("millrace natural", "millrace baseline", "MariaDB baseline", "MariaDB natural")


@dataclass(frozen=True, slots=True)
class Options:
    cases: str = option(",".join(CASES), "which servers and statements, separated by commas")
    scale: float = option(1.0, "1 is the site of 2018: 9,200 users, 40,650 stories, 121,270 comments")
    rate: float = option(0.0, "pages/s; the highest that is carried is looked for if it is 0")
    start_rate: float = option(25.0, "pages/s where the search begins")
    rate_max: float = option(12_800.0, "the highest pages/s to try")
    refinements: int = option(3, "rates tried between the last that was carried and the first that was not")
    warm_s: float = option(4.0, "seconds of each load before the measurement")
    measure_s: float = option(10.0, "seconds that each load is measured")
    first_warm_s: float = option(20.0, "seconds of load at the start rate before the first measurement")
    bound_ms: float = option(100.0, "what the 95th percentile of the sojourn has to stay below")
    processes: int = option(2, "load processes")
    connections: int = option(16, "connections of each load process")
    protocol: str = option("prepared", "prepared (lists of keys as text, as in the paper) or text")
    ribbons: int = option(0, "views of stories that have taken place before: 154,000 are the paper's warm-up")
    workers: int = option(1, "millrace's workers")
    adapters: int = option(1, "millrace's processes that speak MySQL")
    memory: str = option("", "millrace's --memory")
    durable: bool = option(False, "acknowledged writes are on disk")
    check: int = option(0, "compare the answers of so many requests, natural and baseline, instead of measuring")
    cold_s: float = option(0.0, "seconds at --rate from the first page on, by second: no warm-up before")
    soak_s: float = option(0.0, "seconds at --rate while a view comes and goes and a worker is killed; millrace natural only")
    memory_experiments: bool = option(False, "the paper's: partial and full state, limits; --rate pages/s, millrace natural only")
    quick: bool = option(False, "a smoke test: a small site, short loads")
    output: str = option("bench-results", "the folder for lobsters.json and the plots")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    points: tuple[PageLoad, ...]


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    if options.quick:
        options = replace(
            options, scale=0.01, start_rate=10.0, rate_max=20.0, refinements=0, warm_s=0.2, measure_s=1.0,
            first_warm_s=0.5, processes=1, connections=4,
        )  # fmt: skip
    if options.check:
        yield from _check(advance, options)
        return
    if (options.cold_s or options.soak_s or options.memory_experiments) and not options.rate:
        raise SystemExit("millrace bench lobsters: --rate is needed, the pages/s to offer")
    if options.memory_experiments:
        yield from _memory_experiments(advance, options)
        return
    if options.soak_s:
        yield from _soak(advance, options)
        return
    cases: list[Case] = []
    names = options.cases.split(",")
    for number, name in enumerate(names):
        if name not in CASES:
            raise SystemExit(f"millrace bench lobsters: no case {name!r}; there are: {', '.join(CASES)}")
        say = partial(_say, advance, number / len(names), name)
        with site(name, options, say) as server:
            if server is not None:
                cases.append(Case(name, _points(name, server, options, say)))
                _write(cases, options)
    if options.cold_s:
        for case in cases:
            calm_s, point = case.points[0].calm_from_s(options.bound_ms), case.points[0]
            peers = {"errors": point.errors, "p95 of all pages, ms": point.p95_ms, "ms of CPU a page": point.server_cpu_us / 1000}
            yield Measurement("lobsters", f"p95 within the bound from cold, {case.name}", calm_s, "s", peers)
        return
    yield from measurements(cases, options.bound_ms)


def _soak(advance: Advance, options: Options) -> Iterator[Measurement]:
    name = CASES[0]
    say = partial(_say, advance, 0.0, name)
    with scratch() as folder, site(name, options, say) as server:
        assert server is not None
        with closing(LobstersUsers(name, server, DATABASE, options)) as users:
            say("warming")
            users.measure(options.rate, 0.0, options.first_warm_s)
            say("soaking")
            point, found = soak(users, server, DATABASE, options.rate, options.soak_s, options.bound_ms)
        _write([Case(name, (point,))], options)
        yield from found
        differing = 0
        for line in compared_at_the_end(server, DATABASE, options.scale, folder, _lines):
            print(line, file=sys.stderr)
            differing += 1
        yield Measurement("lobsters", "soak: differing answers at the end", differing, f"in {CHECKED_PAGES} pages")


def _memory_experiments(advance: Advance, options: Options) -> Iterator[Measurement]:
    say = partial(_say, advance, 0.0, CASES[0])

    def prime(server: MeasuredServer) -> None:
        for line in _lines("site", server.port, DATABASE, "natural", options.scale, options.ribbons, "millrace"):
            say(line)

    points: list[MemoryPoint] = []
    with scratch() as folder:
        for point in memory_experiments(options, folder, _flags(options), prime, say):
            print(point, file=sys.stderr)
            points.append(point)
    yield from written(points, options)
    if importlib.util.find_spec("matplotlib") is not None:
        plot(points, options.bound_ms, Path(options.output))


def _say(advance: Advance, done: float, name: str, what: str) -> None:
    advance(f"{name}: {what}", done)


def measurements(cases: list[Case], bound_ms: float) -> Iterator[Measurement]:
    """What the first case reaches, with the others beside it."""
    found = {case.name: best(case.points, bound_ms) for case in cases}
    reached = {name: point for name, point in found.items() if point is not None}
    metrics: tuple[tuple[str, str, Callable[[PageLoad], float]], ...] = (
        ("throughput", "pages/s", lambda point: point.answered),
        ("server_cpu", "ms/page", lambda point: point.server_cpu_us / 1000),
        ("p95", "ms", lambda point: point.p95_ms),
        ("memory", "MB", lambda point: point.memory_mb),
    )
    for metric, unit, value in metrics if reached else ():
        first, *others = [(name, value(point)) for name, point in reached.items()]
        yield Measurement("lobsters", f"{metric}, {first[0]}", first[1], unit, dict(others))


def _points(name: str, server: MeasuredServer, options: Options, advance: Callable[[str], None]) -> tuple[PageLoad, ...]:
    with closing(LobstersUsers(name, server, DATABASE, options)) as users:
        if options.cold_s:
            advance("cold")
            return (users.measure(options.rate, 0.0, options.cold_s),)
        advance("warming")
        first = options.rate or options.start_rate
        users.measure(first, 0.0, options.first_warm_s)

        def measure(rate: float) -> PageLoad:
            advance(f"{rate:,.0f} pages/s")
            point = users.measure(rate, options.warm_s, options.measure_s)
            errors = f", {point.errors} errors: {'; '.join(point.first_errors)}" if point.errors else ""
            said = f"{name}: {rate:,.0f} pages/s: p50 {point.p50_ms:.1f} ms, p95 {point.p95_ms:.1f} ms"
            print(f"{said}, {point.server_cpu_us / 1000:.2f} ms of CPU a page, {point.memory_mb:,.0f} MB ({point.data_files_mb:,.0f} of files){errors}", file=sys.stderr)
            return point

        if options.rate:
            return (measure(options.rate),)
        return tuple(climb(measure, (options.start_rate, options.rate_max), options.bound_ms, options.refinements))


@contextmanager
def site(name: str, options: Options, advance: Callable[[str], None]) -> Iterator[MeasuredServer | None]:
    """A server of the case with the primed site; None if it is not installed."""
    system, variant = name.split()
    with scratch() as folder, _started(system, folder, options) as server:
        if server is not None:
            for line in _lines("site", server.port, DATABASE, variant, options.scale, options.ribbons, system.lower()):
                advance(line)
        else:
            print(f"{name} is left out: apt-get install mariadb-server-core", file=sys.stderr)
        yield server


@contextmanager
def _started(system: str, folder: Path, options: Options) -> Iterator[MeasuredServer | None]:
    if system == "millrace":
        more = [f"--memory={options.memory}"] if options.memory else []
        with millrace(folder / "millrace", *_flags(options), *more) as server:
            yield server
        return
    flags = [] if options.durable else ["--innodb-flush-log-at-trx-commit=0"]
    with mariadb(folder, *flags, "--sql-mode=STRICT_TRANS_TABLES") as port:
        yield None if port is None else MeasuredServer(port, int((folder / "m.pid").read_text()))


def _flags(options: Options) -> list[str]:
    flags = [f"--workers={options.workers}", f"--adapters={options.adapters}", "--controllers=1"]
    return [*flags, f"--durability={'fsync' if options.durable else 'os'}"]


def _check(advance: Advance, options: Options) -> Iterator[Measurement]:
    for variant in ("natural", "baseline"):
        sites = [site(f"{system} {variant}", options, partial(_say, advance, 0.0, system)) for system in ("millrace", "MariaDB")]
        with sites[0] as ours, sites[1] as theirs:
            if ours is None or theirs is None:
                continue
            count = 0
            for line in _lines("check", ours.port, theirs.port, DATABASE, variant, options.scale, options.check):
                print(line, file=sys.stderr)
                count += 1
            yield Measurement("lobsters", f"differing answers, {variant}", count, f"in {options.check:,} pages")


def _lines(program: str, *arguments: object) -> Iterator[str]:
    """What one of the application's programs writes, as it comes."""
    command = [sys.executable, "-m", f"apps.lobsters.{program}", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from map(str.rstrip, process.stdout)
    if process.returncode:
        raise RuntimeError(f"apps.lobsters.{program} has failed; its message is above")


def _write(cases: list[Case], options: Options) -> None:
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    found = {"options": asdict(options), "cases": [asdict(case) for case in cases]}
    (folder / "lobsters.json").write_text(json.dumps(found, indent=1))
    if importlib.util.find_spec("matplotlib") is not None:
        from backend.bench.lobsters_plot import plot_cases

        plot_cases(cases, options.bound_ms, folder)
