"""`millrace bench`: every figure we claim, measured beside what we compare it to.

A benchmark is a module here with a function `run(progress)` that yields `Measurement`s, or
`run(progress, options)` if it has a class `Options` (see `backend.bench.options`). What it
measures against runs in the same minute on the same machine; ratios are what counts.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from backend.bench.options import parse_options

BENCHMARKS = ("insert", "import", "dataflow", "sharing", "reads", "wire", "vote", "migration", "eviction", "stalls", "scan", "oneoff", "lobsters", "scale")

Advance = Callable[[str, float], None]
"""advance(what is being measured, fraction done)"""


@dataclass(frozen=True, slots=True)
class Measurement:
    """`peers` are the same measure of others, in the same unit."""

    bench: str
    metric: str
    value: float
    unit: str
    peers: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> dict[str, float]:
        return {name: self.value / value for name, value in self.peers.items() if value}

    def as_json(self) -> str:
        return json.dumps(
            {
                "bench": self.bench,
                "metric": self.metric,
                "value": self.value,
                "unit": self.unit,
                "peers": self.peers,
                "ratio": self.ratio,
            }
        )


Benchmark = Callable[[Advance], Iterator[Measurement]]


def run_benchmarks(name: str, as_json: bool, arguments: Sequence[str] = ()) -> int:
    """Run one benchmark or all, and print what they measure; the exit code."""
    if name != "all" and name not in BENCHMARKS:
        print(f"millrace: no benchmark {name!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # it complains until ZooKeeper is up
    for chosen in BENCHMARKS if name == "all" else (name,):
        benchmark = _benchmark(chosen, arguments)
        measurements = _with_progress(chosen, benchmark)
        if as_json:
            for measurement in measurements:
                print(measurement.as_json(), flush=True)
        else:
            _print_table(chosen, list(measurements))
    return 0


def _benchmark(name: str, arguments: Sequence[str]) -> Benchmark:
    module = importlib.import_module(f"backend.bench.{name}")
    if hasattr(module, "Options"):
        return partial(module.run, options=parse_options(module.Options, name, arguments))
    run: Benchmark = module.run
    if arguments:
        raise SystemExit(f"millrace bench {name} has no options: {' '.join(arguments)}")
    return run


def _with_progress(name: str, benchmark: Benchmark) -> Iterator[Measurement]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=1.0)
        yield from benchmark(
            lambda what, done: progress.update(task, description=f"{name}: {what}", completed=done)
        )


def _print_table(name: str, measurements: list[Measurement]) -> None:
    table = Table("metric", "millrace", "unit", "others", "ratio", title=name)
    for each in measurements:
        table.add_row(
            each.metric,
            f"{each.value:,.0f}" if each.value >= 100 else f"{each.value:,.3g}",
            each.unit,
            "\n".join(
                f"{peer} {value:,.0f}" if value >= 100 else f"{peer} {value:,.3g}"
                for peer, value in each.peers.items()
            ),
            "\n".join(f"{ratio:.2f}×" for ratio in each.ratio.values()),
        )
    Console(highlight=False).print(table)
