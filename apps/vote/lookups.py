"""Single lookups of stories, for `millrace bench eviction`: `python -m apps.vote.lookups DATA PORT fill|read STORIES VOTES LOOKUPS OUTPUT`.

`fill` makes the tables and reads every story once. `read` looks stories up by Zipf and tells of each
whether it was found without asking a worker, and how long it took.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pymysql

from apps.vote.millrace_client import DATABASE, STORY, MillraceClient
from apps.vote.requests import draw_keys
from millrace import connect

BATCH = 1_000
SAMPLES = 100
"""So often it is asked how many keys are kept."""


class Keeper:
    """Tells what is kept, as any MySQL client can see it."""

    def __init__(self, port: int) -> None:
        self._cursor = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True).cursor()

    def keys(self) -> int:
        return self._number("SELECT MAX(key_count) FROM millrace.views")

    def size_bytes(self) -> int:
        return self._number("SELECT SUM(bytes) FROM millrace.arrangements")

    def _number(self, sql: str) -> int:
        self._cursor.execute(sql)
        row = self._cursor.fetchone()
        assert row is not None
        return int(row[0] or 0)


def fill(data: str, keeper: Keeper, stories: int, votes: int) -> dict[str, Any]:
    client = MillraceClient(data)
    client.prepare(stories)
    for first in range(0, votes, BATCH):
        client.vote(np.arange(first, min(first + BATCH, votes)) % stories + 1)
    for first in range(1, stories + 1, BATCH):
        client.read(np.arange(first, min(first + BATCH, stories + 1)))
    client.close()
    return {"keys": keeper.keys(), "bytes": keeper.size_bytes()}


def read(data: str, keeper: Keeper, stories: int, lookups: int) -> dict[str, Any]:
    trace = draw_keys("zipf", stories, 1, lookups).tolist()
    hits, waits_ms, counts = [], [], []
    with connect(data, DATABASE) as database:
        view = database.view(STORY)
        for number, story in enumerate(trace):
            started = time.perf_counter()
            hit = view.lookup(story, block=False) is not None
            if not hit:
                view.lookup(story)
            waits_ms.append((time.perf_counter() - started) * 1000)
            hits.append(hit)
            if number % (lookups // SAMPLES) == 0:
                counts.append(keeper.keys())
    return {"trace": trace, "hits": hits, "waits_ms": waits_ms, "kept": counts}


def main() -> None:
    data, port, role, stories, votes, lookups, output = sys.argv[1:]
    keeper = Keeper(int(port))
    if role == "fill":
        found = fill(data, keeper, int(stories), int(votes))
    else:
        found = read(data, keeper, int(stories), int(lookups))
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
