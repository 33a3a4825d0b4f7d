"""Histograms of the durations in this process, which hot paths add to; part of a worker's status."""

from __future__ import annotations

from bisect import bisect_left

from backend.processes.statement_counts import EDGES_S


class Durations:
    """`bins` are those of EDGES_S, and one more."""

    __slots__ = ("bins", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.bins = [0] * (len(EDGES_S) + 1)

    def took(self, seconds: float) -> None:
        self.seconds += seconds
        self.bins[bisect_left(EDGES_S, seconds)] += 1


EPOCHS = Durations()
"""From when an epoch is written until the views show it."""
WRITES = Durations()
"""Writing an epoch to disk, fsync included."""
FILLS = Durations()
"""Upqueries: from a lookup that misses until its keys are filled."""


def told() -> dict[str, tuple[float, list[int]]]:
    """(seconds, bins) of each."""
    return {name: (each.seconds, each.bins) for name, each in (("epoch", EPOCHS), ("write", WRITES), ("fill", FILLS))}
