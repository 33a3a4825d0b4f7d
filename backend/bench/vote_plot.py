"""Throughput against the 95th percentile of the sojourn time: one panel for each mix and choice of keys."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from backend.bench.plot import figure, save

if TYPE_CHECKING:
    from backend.bench.vote import Case


def plot_cases(cases: Sequence[Case], bound_ms: float, folder: Path) -> None:
    panels = list(dict.fromkeys((case.keys, case.mix) for case in cases))
    drawn, axes = figure(len(panels))
    for (keys, mix), axis in zip(panels, axes):
        for case in cases:
            if (case.keys, case.mix) != (keys, mix):
                continue
            points = sorted((each.answered, each.p95_ms) for each in case.points if isfinite(each.p95_ms))
            axis.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=3, label=case.system)
        axis.axhline(bound_ms, color="grey", linestyle=":", linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="requests/s", title=f"{mix} reads/votes, {keys}")
        axis.set_ylabel("95th percentile of the sojourn, ms")
        axis.grid(True, which="major", linewidth=0.3)
    axes[0].legend(fontsize="small")
    save(drawn, folder / "vote")
