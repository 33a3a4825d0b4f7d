"""The highest load that a system carries within a bound on the 95th percentile of its sojourn times.

Loads are doubled until one is too much, then halved (in their ratio) between the last that was
carried and the first that was not. Whatever was measured on the way is kept for the plot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

RATE_MAX = 64e6


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What was offered and answered, in requests/s, and what each request cost in processor time."""

    offered: float
    answered: float
    p50_ms: float
    p95_ms: float
    server_cpu_us: float
    client_cpu_us: float


def climb(
    measure: Callable[[float], LoadPoint], start_rate: float, bound_ms: float, refinements: int
) -> list[LoadPoint]:
    """Every load that was measured, in that order."""
    points: list[LoadPoint] = []
    carried, refused = 0.0, 0.0

    def attempt(rate: float) -> bool:
        nonlocal carried, refused
        point = measure(rate)
        points.append(point)
        within = point.p95_ms < bound_ms
        if within:
            carried = rate
        else:
            refused = rate
        return within

    rate = start_rate
    while attempt(rate) and rate < RATE_MAX:
        rate *= 2
    while not carried and rate > 1:
        rate /= 4
        attempt(rate)
    for _ in range(refinements if refused else 0):
        attempt((carried * refused) ** 0.5)
    return points


def best(points: Sequence[LoadPoint], bound_ms: float) -> LoadPoint | None:
    """The most that was answered within the bound."""
    return max((each for each in points if each.p95_ms < bound_ms), key=lambda each: each.answered, default=None)


def quantile(histogram: Sequence[int], edges: Sequence[float], fraction: float) -> float:
    """An upper bound of the quantile; infinite if it is among what has no upper edge."""
    wanted, seen = fraction * sum(histogram), 0
    for count, edge in zip(histogram, edges):
        seen += count
        if seen >= wanted:
            return edge
    return float("inf")
