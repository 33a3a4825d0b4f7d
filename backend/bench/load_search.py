"""The highest load that a system carries within a bound on the 95th percentile of its sojourn times.

Loads are doubled until one is too much, then halved (in their ratio) between the last that was
carried and the first that was not. A load is too much if it was so at every attempt: other
programs of the machine may spoil one. Whatever was measured is kept for the plot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What was offered and answered, in requests/s, and what each request cost in processor time.

    `p95_ms` is that of reads or of votes, whichever is more.
    """

    offered: float
    answered: float
    p50_ms: float
    p95_ms: float
    server_cpu_us: float
    client_cpu_us: float


Point = TypeVar("Point", bound=LoadPoint)


def climb(
    measure: Callable[[float], Point], rates: tuple[float, float], bound_ms: float, refinements: int, attempts: int = 1
) -> list[Point]:
    """Every load that was measured, in that order; `rates` are where to begin, and the highest to try."""
    points: list[Point] = []
    carried, refused = 0.0, 0.0

    def attempt(rate: float) -> bool:
        nonlocal carried, refused
        for _ in range(attempts):
            points.append(measure(rate))
            if points[-1].p95_ms < bound_ms:
                carried = rate
                return True
        refused = rate
        return False

    rate, highest = rates
    while attempt(rate) and 2 * rate <= highest:
        rate *= 2
    while not carried and rate > 1:
        rate /= 4
        attempt(rate)
    for _ in range(refinements if refused and carried else 0):
        attempt((carried * refused) ** 0.5)
    return points


def best(points: Sequence[Point], bound_ms: float) -> Point | None:
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
