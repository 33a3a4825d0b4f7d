"""One process that puts load on a system: `python -m apps.vote.load SYSTEM ADDRESS reads|votes STORIES KEYS`.

Partially open loop, as in the paper: requests come by the clock whether or not the system keeps
up; those that come within 1 ms go as one batch, and at most one batch is under way, so what
comes meanwhile waits and makes the next one larger. What counts is the sojourn: from a
request's scheduled arrival until the answer of its batch.

It is told what to do by lines of JSON on its standard input, and answers each by one on its output.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from apps.vote.clients import Client, open_client
from apps.vote.requests import Array, distinct, draw_arrivals, draw_keys

WINDOW_S = 0.001
GRACE_S = 0.25
"""What has not been answered so long after the end counts as never answered."""
READ_ALL = 1_000
"""So many stories are read at once before anything is measured."""
SOJOURN_EDGES_S = np.geomspace(1e-5, 10.0, 241)
"""Histograms have a last bin for what took longer, or was never answered."""


class Load:
    def __init__(self, client: Client, what: str, keys: Array, batch_max: int) -> None:
        self._client = client
        self._reads = what == "reads"
        self._keys = keys
        self._next_key = 0
        self._batch_max = batch_max

    def run(self, rate: float, start: float, warm_s: float, measure_s: float, seed: int) -> dict[str, Any]:
        """Requests at `rate` from `start` (of time.monotonic) on; the sojourns of those after the warm-up."""
        end_s = warm_s + measure_s
        arrivals = draw_arrivals(rate, end_s, seed)
        sojourns = np.full(len(arrivals), np.inf)
        time.sleep(max(start - time.monotonic(), 0))
        done, batches, cpu = 0, 0, time.process_time()
        while done < len(arrivals):
            now_s = time.monotonic() - start
            wait_s = arrivals[done] + WINDOW_S - now_s
            if wait_s > 0:
                time.sleep(wait_s)
                now_s = time.monotonic() - start
            if now_s > end_s + GRACE_S:
                break
            due = done + int(arrivals[done : done + self._batch_max].searchsorted(now_s))
            self._send(due - done)
            sojourns[done:due] = (time.monotonic() - start) - arrivals[done:due]
            done, batches = due, batches + 1
        cpu = time.process_time() - cpu
        measured = sojourns[np.searchsorted(arrivals, warm_s) :]
        bins = np.searchsorted(SOJOURN_EDGES_S, measured)
        return {
            "offered": len(measured),
            "answered": int(np.isfinite(measured).sum()),
            "histogram": np.bincount(bins, minlength=len(SOJOURN_EDGES_S) + 1).tolist(),
            "batches": batches,
            "requests": done,
            "cpu_s": cpu,
        }

    def _send(self, count: int) -> None:
        first = self._next_key
        if first + count > len(self._keys):
            first = 0
        self._next_key = first + count
        keys = self._keys[first : first + count]
        if not self._reads:
            self._client.vote(keys)
            return
        wanted = distinct(keys)
        found = self._client.read(wanted)
        assert found == len(wanted), f"{len(wanted)} stories were asked for, {found} were found"

    def read_all(self, stories: int) -> None:
        """Every story once, so that what is computed or cached on demand is there."""
        for first in (1, 1, *range(1, stories + 1, READ_ALL)):  # what is asked for again and again becomes a view
            keys = np.arange(first, min(first + READ_ALL, stories + 1))
            assert self._client.read(keys) == len(keys)


def main() -> None:
    system, address, what, stories, distribution, batch_max, seed = sys.argv[1:]
    client = open_client(system, json.loads(address), int(stories))
    keys = draw_keys(distribution, int(stories), int(seed))
    load = Load(client, what, keys, int(batch_max))
    print("{}", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        answer: dict[str, Any] = {}
        match wanted.pop("do"):
            case "prepare":
                client.prepare(int(stories))
            case "read_all":
                load.read_all(int(stories))
            case "load":
                answer = load.run(**wanted)
        print(json.dumps(answer), flush=True)
    client.close()


if __name__ == "__main__":
    main()
