"""`millrace bench migration`: ratings are added to a running vote application (Noria paper, section 8.5).

While votes are written in batches and stories read, a table of ratings and views that add them to the
votes are installed, and asked for at once. Measured is the time from there to the first answer, and
how fast reads and writes go before, during and after it. Beside the usual (partial state, on top
of the votes that are counted already) are runs without the reuse, and without either.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.options import option
from backend.bench.servers import millrace

BIN_S = 0.2
"""As in apps.vote.migration."""
Process = subprocess.Popen[str]
DURING_S = 2.0
AGAIN_S, SETTLE_S = 3600.0, 0.5
"""How long there are reads and writes at most while it is repeated, and how long before each time."""
LOADERS = 2


@dataclass(frozen=True, slots=True)
class Options:
    stories: int = option(200_000, "number of stories")
    votes: int = option(3_000_000, "votes there are before")
    before_s: float = option(5.0, "seconds of reads and writes before the migration")
    after_s: float = option(10.0, "seconds of them from then on")
    again: int = option(10, "how often it is repeated under the same load, with reuse, for the spread of its times")
    memory: str = option("2G", "as for millrace serve")
    durability: str = option("os", "as for millrace serve: fsync or os")
    data: str = option("", "a folder for stories and votes that stay for the next run")
    quick: bool = option(False, "a smoke test: few stories and votes, one run")
    output: str = option("bench-results", "the folder for migration.json and the plots migration.png and migration.svg")


@dataclass(frozen=True, slots=True)
class MigrationRun:
    name: str
    keys: str
    reuse: bool = True
    partial: bool = True


RUNS: tuple[MigrationRun, ...] = (
    MigrationRun("partial, reuse, zipf", "zipf"),
    MigrationRun("partial, reuse, uniform", "uniform"),
    MigrationRun("partial, no reuse, zipf", "zipf", reuse=False),
    MigrationRun("full, no reuse, zipf", "zipf", reuse=False, partial=False),
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Counts are per second, one for each fifth of a second since the start; `hits` are fractions of probes.

    `again_ms` are the times to the first answer when the same migration is made again and again.
    """

    run: MigrationRun
    installed_ms: float
    answered_ms: float
    kept_ms: float
    votes: list[float]
    reads: list[float]
    ratings: list[float]
    hits: list[float | None]
    again_ms: list[float]


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    runs = RUNS
    if options.quick:
        options = replace(options, stories=2_000, votes=10_000, before_s=1.0, after_s=1.0, again=1)
        runs = RUNS[:1]
    timelines: list[Timeline] = []
    with _folder(options.data) as folder:
        data, loaded = folder / "millrace", folder / "loaded"
        flags = (f"--memory={options.memory}", f"--durability={options.durability}", "--controllers=1")
        for number, each in enumerate(runs):
            environment = {} if each.partial else {"MILLRACE_PARTIAL": "off"}
            with millrace(data, *flags, environment=environment):
                if not loaded.exists():
                    advance(f"{options.stories:,} stories and {options.votes:,} votes", 0.02)
                    _load(data, options)
                    loaded.touch()
                advance(each.name, 0.4 + 0.6 * number / len(runs))
                for form in ("reuse", "anew"):
                    # What a run that was interrupted has left in the folder.
                    _result(_start(data, "undo", options, form))
                timelines.append(_migrate(data, each, options))
                _write(timelines, options)
    yield from measurements(timelines, options)


@contextmanager
def _folder(given: str) -> Iterator[Path]:
    if given:
        Path(given).mkdir(parents=True, exist_ok=True)
        yield Path(given).resolve()
    else:
        with scratch() as folder:
            yield folder


def _start(data: Path, role: str, options: Options, keys: str = "-") -> Process:
    command = [sys.executable, "-m", "apps.vote.migration", str(data), role, str(options.stories), keys]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def _running(data: Path, role: str, options: Options, keys: str) -> Iterator[Process]:
    """A process that doesn't stay when another one has failed."""
    process = _start(data, role, options, keys)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: Process) -> None:
    assert process.stdout is not None
    if not process.stdout.readline():
        _result(process)


def _tell(process: Process, start: float, seconds: float) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps([start, seconds]) + "\n")
    process.stdin.flush()


def _result(process: Process) -> Any:
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("a process of the application has failed; its message is above")
    return json.loads(output) if output else None


def _load(data: Path, options: Options) -> None:
    _result(_start(data, "prepare", options))
    share = options.votes // LOADERS
    for process in [_start(data, f"load:{share}:{seed}", options, "zipf") for seed in range(LOADERS)]:
        _result(process)


def _migrate(data: Path, run: MigrationRun, options: Options) -> Timeline:
    form, probe_role = ("reuse", "probe") if run.reuse else ("anew", "probe-anew")
    with ExitStack() as running:
        switch = running.enter_context(_running(data, "switch", options, form))
        others = (
            running.enter_context(_running(data, role, options, run.keys)) for role in ("vote", "read", "rate", probe_role)
        )
        timeline = _measured(run, options, switch, *others)
    _result(_start(data, "undo", options, form))
    return replace(timeline, again_ms=_again(data, run, options)) if run.reuse else timeline


def _again(data: Path, run: MigrationRun, options: Options) -> list[float]:
    """The times to the first answer of more migrations, each taken back before the next."""
    found: list[float] = []
    with _running(data, "vote", options, run.keys) as vote, _running(data, "read", options, run.keys) as read:
        for process in (vote, read):
            _wait_until_ready(process)
            _tell(process, time.monotonic(), AGAIN_S)
        for _ in range(options.again):
            with _running(data, "switch", options, "reuse") as switch:
                _wait_until_ready(switch)
                _tell(switch, time.monotonic() + SETTLE_S, 0)
                found.append(_result(switch)["answered"])
            _result(_start(data, "undo", options, "reuse"))
    return found


def _measured(run: MigrationRun, options: Options, switch: Process, vote: Process, read: Process, rate: Process, probe: Process) -> Timeline:
    for process in (switch, vote, read, rate, probe):
        _wait_until_ready(process)
    start = time.monotonic()
    switch_at = start + options.before_s
    for process in (vote, read):
        _tell(process, start, options.before_s + options.after_s)
    _tell(switch, switch_at, 0)
    switched = _result(switch)
    now = time.monotonic()
    for process in (rate, probe):
        _tell(process, now, max(switch_at + options.after_s - now, BIN_S))
    votes, reads, ratings, probes = map(_result, (vote, read, rate, probe))
    late = [[0, 0]] * round((now - start) / BIN_S)
    return Timeline(
        run, switched["installed"], switched["answered"], switched["kept"],
        _per_second(votes), _per_second(reads), _per_second(late + ratings),
        [done / tried if tried else None for done, tried in late + probes], [],
    )  # fmt: skip


def _per_second(bins: list[list[int]]) -> list[float]:
    return [done / BIN_S for done, _ in bins[:-1]]


def measurements(timelines: list[Timeline], options: Options) -> Iterator[Measurement]:
    """What the first run has, with the others beside it."""
    switch_s = options.before_s
    spans = {
        "before": (min(1.0, switch_s / 2), switch_s),
        "during": (switch_s, switch_s + min(DURING_S, options.after_s)),
        "after": (switch_s + min(DURING_S, options.after_s / 2), switch_s + options.after_s),
    }
    for metric in ("answered_ms", "installed_ms", "kept_ms"):
        yield _measurement(metric, "ms", {each.run.name: getattr(each, metric) for each in timelines})
    repeated = {each.run.name: each.again_ms for each in timelines if each.again_ms}
    for metric, chosen in (("answered_again_median_ms", median), ("answered_again_most_ms", max)):
        if repeated:
            yield _measurement(metric, "ms", {name: chosen(each) for name, each in repeated.items()})
    for what in ("votes", "reads"):
        for when, span in spans.items():
            means = {each.run.name: _mean(getattr(each, what), *span) for each in timelines}
            yield _measurement(f"{what}_{when}", f"{what}/s", means)


def _measurement(metric: str, unit: str, values: dict[str, float]) -> Measurement:
    first, *others = values
    return Measurement("migration", metric, values[first], unit, {name: values[name] for name in others})


def _mean(counts: list[float], begin_s: float, end_s: float) -> float:
    chosen = counts[round(begin_s / BIN_S) : round(end_s / BIN_S)]
    return sum(chosen) / max(len(chosen), 1)


def _write(timelines: list[Timeline], options: Options) -> None:
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    found = {"options": asdict(options), "timelines": [asdict(each) for each in timelines]}
    (folder / "migration.json").write_text(json.dumps(found, indent=1))
    if importlib.util.find_spec("matplotlib") is not None:
        from backend.bench.plot import figure, save

        drawn, axes = figure(4)
        for axis, what in zip(axes, ("votes", "ratings", "reads", "hits")):
            for each in timelines:
                counts = getattr(each, what)
                axis.plot([number * BIN_S - options.before_s for number in range(len(counts))], counts, label=each.run.name)
            axis.axvline(0, color="grey", linestyle=":", linewidth=1)
            unit = "found in the view" if what == "hits" else f"{what}/s"
            axis.set(xlabel="seconds since the migration", ylabel=unit, ylim=(0, None), xlim=(-options.before_s, options.after_s))
            axis.grid(True, linewidth=0.3)
        axes[0].legend(fontsize="small")
        save(drawn, folder / "migration")
