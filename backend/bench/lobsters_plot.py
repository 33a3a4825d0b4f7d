"""Pages/s against the 95th percentile of the sojourn, and against the server's memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from backend.bench.plot import figure, save

if TYPE_CHECKING:
    from backend.bench.lobsters import Case


def plot_cases(cases: Sequence[Case], bound_ms: float, folder: Path) -> None:
    if not any(isfinite(each.p95_ms) for case in cases for each in case.points):
        return
    drawn, (latency, memory) = figure(2)
    for case in cases:
        points = sorted((each.answered, each.p95_ms, each.memory_mb) for each in case.points if isfinite(each.p95_ms))
        rates = [rate for rate, _, _ in points]
        latency.plot(rates, [p95 for _, p95, _ in points], marker="o", markersize=3, label=case.name)
        memory.plot(rates, [size for _, _, size in points], marker="o", markersize=3, label=case.name)
    latency.axhline(bound_ms, color="grey", linestyle=":", linewidth=1)
    latency.set(xscale="log", yscale="log", xlabel="pages/s", ylabel="95th percentile of the sojourn, ms")
    memory.set(xscale="log", xlabel="pages/s", ylabel="server memory, MB")
    for axis in (latency, memory):
        axis.grid(True, which="major", linewidth=0.3)
    latency.legend(fontsize="small")
    save(drawn, folder / "lobsters")
