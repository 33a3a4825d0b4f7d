"""`millrace bench scale`: votes and reads with 1, 2 and 4 workers.

Every cluster gets the same load from the same processes (apps/vote, through the client library): reads alone, votes alone, and a
mix. For each the figure is the throughput that keeps the 95th percentile of the sojourn times under a bound, and beside
it what the workers spend on a request: all together, and the busiest one, which is what limits a cluster whose
workers have a core each. docs/scaling.md says what follows for more workers than there are cores here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.load_search import LoadPoint, best, climb
from backend.bench.options import option
from backend.bench.plot import figure, save
from backend.bench.servers import millrace
from backend.bench.vote_crowd import Crowd, CrowdSize
from backend.client.target import find_deployment
from backend.network.bundles import BundleSent
from backend.network.transport import Peer, connect, listen
from controller.registry import Registry

MIXES = {"reads": 0.0, "votes": 1.0, "95/5": 0.05}
"""The share of votes in each."""
READ_ALL = 3
"""So often all stories are read before anything is measured: several workers that take long for some leave those for the next time."""
MESSAGES, BUNDLE_BYTES = 20_000, 100


@dataclass(frozen=True, slots=True)
class Options:
    workers: str = option("1,2,4", "how many workers each cluster has")
    mixes: str = option(",".join(MIXES), "which loads")
    stories: int = option(100_000, "number of stories")
    readers: int = option(1, "processes that read")
    voters: int = option(1, "processes that vote")
    batch: int = option(10_000, "most requests in one batch")
    warm_s: float = option(0.4, "seconds of each load before the measurement")
    measure_s: float = option(2.0, "seconds that each load is measured")
    start_rate: int = option(4_000, "requests/s to begin with")
    rate_max: int = option(4_000_000, "the highest requests/s to try")
    refinements: int = option(2, "loads tried between the last that was carried and the first that was not")
    bound_ms: float = option(100.0, "what the 95th percentile has to stay below")
    quick: bool = option(False, "a smoke test: few stories, short loads, one and two workers")
    output: str = option("bench-results", "the folder for scale.json and the plots scale.png and scale.svg")


@dataclass(frozen=True, slots=True)
class WorkersPoint(LoadPoint):
    """`worker_cpu_us` has what each worker spent on a request of the load, whoever answered it."""

    worker_cpu_us: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    workers: int
    mix: str
    points: tuple[WorkersPoint, ...]


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    if options.quick:
        options = replace(options, workers="1,2", stories=2_000, warm_s=0.1, measure_s=0.3, rate_max=options.start_rate, refinements=0)
    cases: list[Case] = []
    counts = [int(each) for each in options.workers.split(",")]
    for number, workers in enumerate(counts):
        done = number / len(counts)
        cases += _cases(workers, options, partial(_say, advance, done))
        _write(cases, options)
    yield from measurements(cases, options.bound_ms)
    yield Measurement("scale", "message_cpu", asyncio.run(_message_cpu_us()), "µs/message")


async def _message_cpu_us() -> float:
    """What a small message between two workers costs both of them together, one after the other."""
    over, left = asyncio.Event(), MESSAGES

    def answer(peer: Peer, request: int, message: BundleSent) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            peer.send(message)
        else:
            over.set()

    secret = b"s" * 32
    server, port = await listen("127.0.0.1", 0, secret, answer)
    peer = await connect("127.0.0.1", port, secret, answer)
    begun = time.process_time()
    peer.send(BundleSent(b"b" * BUNDLE_BYTES))
    await over.wait()
    spent = time.process_time() - begun
    peer.close()
    server.close()
    return spent / MESSAGES * 1e6


def _say(advance: Advance, done: float, what: str) -> None:
    advance(what, done)


def measurements(cases: Sequence[Case], bound_ms: float) -> Iterator[Measurement]:
    """For each load what each cluster reaches, beside the first."""
    for mix in dict.fromkeys(case.mix for case in cases):
        found = [(case.workers, point) for case in cases if case.mix == mix and (point := best(case.points, bound_ms)) is not None]
        if not found:
            continue
        name, base = f"{found[0][0]} workers", found[0][1]
        for workers, point in found:
            beside = workers != found[0][0]
            for metric, unit, value in METRICS:
                peers = {name: value(base)} if beside else {}
                yield Measurement("scale", f"{metric} {mix} {workers} workers", value(point), unit, peers)


METRICS: tuple[tuple[str, str, Callable[[WorkersPoint], float]], ...] = (
    ("throughput", "requests/s", lambda point: point.answered),
    ("server_cpu", "µs/request", lambda point: point.server_cpu_us),
    ("workers_cpu", "µs/request", lambda point: sum(point.worker_cpu_us)),
    ("busiest_worker_cpu", "µs/request", lambda point: max(point.worker_cpu_us)),
)


def _cases(workers: int, options: Options, advance: Callable[[str], None]) -> Iterator[Case]:
    size = CrowdSize(options.readers, options.voters, options.batch)
    flags = (f"--workers={workers}", "--durability=os", "--controllers=1", "--adapters=1")
    with scratch() as folder, millrace(folder / "millrace", *flags) as server:
        processes = _workers(folder / "millrace")
        address: dict[str, Any] = {"data": str(folder / "millrace"), "durable": False, "mysql_port": server.port}
        with closing(Crowd("millrace client", address, options.stories, "uniform", size)) as crowd:
            advance(f"{workers} workers: loading stories")
            crowd.do("prepare")
            advance(f"{workers} workers: reading every story once")
            for _ in range(READ_ALL):
                crowd.do("read_all")
            for mix in options.mixes.split(","):

                def measure(rate: float, mix: str = mix) -> WorkersPoint:
                    advance(f"{workers} workers: {mix} at {rate:,.0f}/s")
                    seen: list[list[float]] = []

                    def cpu_s() -> float:
                        seen.append([sum(each.cpu_times()[:2]) for each in processes])
                        return server.cpu_s()

                    point = crowd.measure(rate, MIXES[mix], options.warm_s, options.measure_s, cpu_s)
                    spent = [after - before for before, after in zip(*seen)]
                    requests = max(point.answered * options.measure_s, 1) * (options.warm_s + options.measure_s) / options.measure_s
                    return WorkersPoint(
                        point.offered, point.answered, point.p50_ms, point.p95_ms, point.server_cpu_us, point.client_cpu_us,
                        tuple([each / requests * 1e6 for each in spent]),
                    )  # fmt: skip

                yield Case(workers, mix, tuple(climb(measure, (options.start_rate, options.rate_max), options.bound_ms, options.refinements)))


def _workers(data: Path) -> list[psutil.Process]:
    """The worker processes of a cluster, in the order of their shards."""
    deployment = find_deployment(str(data))
    registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
    registry.start()
    try:
        return [psutil.Process(address.process) for _, address in sorted(registry.workers().items())]
    finally:
        registry.stop()


def _write(cases: Sequence[Case], options: Options) -> None:
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    found = {"options": asdict(options), "cases": [asdict(case) for case in cases]}
    (folder / "scale.json").write_text(json.dumps(found, indent=1))
    if importlib.util.find_spec("matplotlib") is not None:
        _plot(cases, options, folder)


def _plot(cases: Sequence[Case], options: Options, folder: Path) -> None:
    """What a request costs the workers, all together and the busiest, by how many there are: one panel for each load."""
    mixes = list(dict.fromkeys(case.mix for case in cases))
    drawn, axes = figure(len(mixes))
    for mix, axis in zip(mixes, axes):
        found = [(case.workers, point) for case in cases if case.mix == mix and (point := best(case.points, options.bound_ms))]
        counts = [workers for workers, _ in found]
        axis.plot(counts, [sum(point.worker_cpu_us) for _, point in found], marker="o", label="all workers")
        axis.plot(counts, [max(point.worker_cpu_us) for _, point in found], marker="o", label="the busiest")
        axis.set(xlabel="workers", ylabel="µs of CPU a request", title=mix, ylim=(0, None), xticks=counts)
        axis.grid(True, linewidth=0.3)
    axes[0].legend(fontsize="small")
    save(drawn, folder / "scale")
