"""The load of the vote application: what is asked for and how its time is told."""

from __future__ import annotations

import threading
import time

import numpy as np

from apps.vote.load import SOJOURN_EDGES_S, Load
from apps.vote.requests import Array, draw_arrivals, draw_keys
from backend.bench.vote_crowd import SOJOURN_EDGES_S as READ_EDGES_S


class Stories:
    """A system in this process, which answers its first batch after `delay_s`."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s
        self.batches: list[list[int]] = []

    def prepare(self, stories: int) -> None: ...

    def read(self, ids: Array) -> int:
        if not self.batches:
            threading.Event().wait(self._delay_s)
        self.batches.append(ids.tolist())
        return len(ids)

    def vote(self, ids: Array) -> None:
        self.batches.append(ids.tolist())

    def close(self) -> None: ...


def test_zipf_has_the_shares_of_the_paper() -> None:
    keys = draw_keys("zipf", 500_000, 1)
    assert keys.min() == 1 and keys.max() <= 500_000
    for top, share in ((1, 0.115), (10, 0.31), (100, 0.51), (1000, 0.68)):
        assert abs((keys <= top).mean() - share) < 0.01
    assert abs((draw_keys("uniform", 500_000, 1) <= 5_000).mean() - 0.01) < 0.002


def test_arrivals_are_as_many_as_the_rate_says_and_before_the_end() -> None:
    arrivals = draw_arrivals(10_000, 2.0, 1)
    assert abs(len(arrivals) - 20_000) < 1_000 and arrivals[-1] < 2.0 and (np.diff(arrivals) >= 0).all()


def test_requests_that_wait_for_a_slow_batch_count_from_their_arrival() -> None:
    stories = Stories(delay_s=0.1)
    load = Load(stories, "reads", draw_keys("uniform", 1000, 1), 1000)
    found = load.run(2_000, time.monotonic(), 0.0, 0.2, 1)
    waited = sum(count for count, edge in zip(found["histogram"], [*SOJOURN_EDGES_S, np.inf]) if edge > 0.05)
    assert found["answered"] == found["offered"] and waited > 50, "those of the first 50 ms waited for more than 50 ms"


def test_a_read_batch_asks_once_for_each_story_and_votes_are_all_sent() -> None:
    stories = Stories()
    keys = np.array([7, 7, 8, 7])
    Load(stories, "reads", keys, 4)._send(4)
    Load(stories, "votes", keys, 4)._send(4)
    assert stories.batches == [[7, 8], [7, 7, 8, 7]]


def test_the_bench_reads_histograms_as_the_load_writes_them() -> None:
    assert np.allclose(SOJOURN_EDGES_S, READ_EDGES_S)
