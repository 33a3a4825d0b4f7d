"""`millrace bench lobsters -- --memory-experiments`: the memory experiments of the Noria paper (8.4).

- *Partial against full*: the state of the natural program after a warm-up, with partial state, and with all of it. Essential state is what is
  full even then: views that are read without a key, and what those need.
- *A limit*: the same load with less and less memory for partial state, down to an eighth of what was needed without a limit. `--memory`
  is that and the essential state, with a tenth more for what is published of it. The working set is the smallest limit with p95 < 100 ms.

One site is primed; every step opens the same data with other options.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from backend.bench import Measurement
from backend.bench.lobsters_soak import worker_process
from backend.bench.lobsters_users import LobstersUsers
from backend.bench.mariadb import connect
from backend.bench.servers import MeasuredServer, millrace

if TYPE_CHECKING:
    import psutil

    from backend.bench.lobsters import Options

SHARES = (1.0, 0.75, 0.5, 0.38, 0.25, 0.125)
"""Of the partial state that the load needs without a limit."""
PUBLISHED = 1.1


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    name: str
    limit_mb: float
    state_mb: float
    """What views and arrangements say that they hold."""
    essential_mb: float
    worker_mb: float
    all_mb: float
    evictions_a_second: float
    p50_ms: float
    p95_ms: float
    answered: float
    cpu_ms: float
    errors: int


def memory_experiments(
    options: Options, folder: Path, flags: list[str], prime: Callable[[MeasuredServer], None], advance: Callable[[str], None]
) -> Iterator[MemoryPoint]:
    data = folder / "millrace"

    def step(name: str, limit: float, is_partial: bool = True) -> MemoryPoint:
        advance(name)
        more = [f"--memory={int(limit)}"] if limit else []
        with millrace(data, *flags, *more, environment={} if is_partial else {"MILLRACE_PARTIAL": "off"}) as server:
            return measured(name, limit, server, options)

    with millrace(data, *flags) as server:
        prime(server)
    free = step("partial, no limit", 0)
    yield free
    yield step("full", 0, is_partial=False)
    for share in SHARES:
        limit_mb = PUBLISHED * free.essential_mb + share * (free.state_mb - free.essential_mb)
        yield step(f"{share:.1%} of the partial state", limit_mb * 1e6)


def measured(name: str, limit: float, server: MeasuredServer, options: Options) -> MemoryPoint:
    with contextlib.closing(LobstersUsers("millrace natural", server, "lobsters", options)) as users:
        users.measure(options.rate, 0.0, options.first_warm_s)
        evicted = state(server)[2]
        point = users.measure(options.rate, options.warm_s, options.measure_s)
        held, essential, evictions = state(server)
        number = worker_process(server)
        [worker] = [each for each in server.processes() if each.pid == number]
    seconds = options.warm_s + options.measure_s
    return MemoryPoint(
        name, limit / 1e6, held / 1e6, essential / 1e6, _pss(worker), point.memory_mb, (evictions - evicted) / seconds,
        point.p50_ms, point.p95_ms, point.answered, point.server_cpu_us / 1000, point.errors,
    )  # fmt: skip


def state(server: MeasuredServer) -> tuple[float, float, float]:
    """Bytes of all arrangements and of the full ones, and how many keys have been evicted from views."""
    with contextlib.closing(connect(server.port)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COALESCE(SUM(bytes), 0), COALESCE(SUM(CASE WHEN state = 'full' THEN bytes END), 0) FROM millrace.arrangements")
        ((held, essential),) = cursor.fetchall()
        cursor.execute("SELECT COALESCE(SUM(evictions), 0) FROM millrace.views")
        ((evictions,),) = cursor.fetchall()
    return float(held), float(essential), float(evictions)


def _pss(process: psutil.Process) -> float:
    return float(process.memory_full_info().pss) / 1e6


def written(points: list[MemoryPoint], options: Options) -> Iterator[Measurement]:
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    found = {"options": asdict(options), "points": [asdict(each) for each in points]}
    (folder / "lobsters-memory.json").write_text(json.dumps(found, indent=1))
    free, full, *limited = points
    yield Measurement("lobsters", "state, partial", free.state_mb, "MB", {"full": full.state_mb})
    yield Measurement("lobsters", "essential state", free.essential_mb, "MB", {"full": full.state_mb})
    for each in limited:
        peers = {"p95, ms": each.p95_ms, "evictions/s": each.evictions_a_second, "state, MB": each.state_mb, "all memory, MB": each.all_mb}
        yield Measurement("lobsters", f"limit of {each.name}", each.limit_mb, "MB", peers)
    carried = [each.limit_mb for each in limited if each.p95_ms < options.bound_ms and not each.errors]
    if carried:
        yield Measurement("lobsters", "working set", min(carried), "MB", {"full": full.state_mb})


def plot(points: list[MemoryPoint], bound_ms: float, folder: Path) -> None:
    from backend.bench.plot import figure, save

    limited = sorted((each for each in points if each.limit_mb and isfinite(each.p95_ms)), key=lambda each: each.limit_mb)
    if not limited:
        return
    drawn, (latency, evictions) = figure(2)
    limits = [each.limit_mb for each in limited]
    for label, values in (("p95", [each.p95_ms for each in limited]), ("p50", [each.p50_ms for each in limited])):
        latency.plot(limits, values, marker="o", markersize=3, label=label)
    latency.axhline(bound_ms, color="grey", linestyle=":", linewidth=1)
    latency.set(yscale="log", xlabel="limit of the state, MB", ylabel="sojourn, ms")
    latency.legend(fontsize="small")
    evictions.plot([each.evictions_a_second for each in limited], [each.p95_ms for each in limited], marker="o", markersize=3)
    evictions.set(yscale="log", xlabel="evictions/s", ylabel="95th percentile of the sojourn, ms")
    for axis in (latency, evictions):
        axis.grid(True, which="major", linewidth=0.3)
    save(drawn, folder / "lobsters-memory")
