"""`millrace bench dataflow`: the vote dataflow of the Noria paper in one worker, in process.

votes → count per story ⋈ stories, 500,000 stories, votes for uniformly random stories. Single
writes come from clients that each send the next one when theirs is in the view: an epoch
takes those that wait when it begins. The view's changed keys are collected for publishing,
as a worker does; base tables are in memory and not durable, as in the paper's comparison. With
`--workers N` see `backend.bench.dataflow_workers`.

Beside it runs pathway, if a Python that has it is found: this one, or the one named by the
environment variable MILLRACE_PATHWAY_PYTHON.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from backend.bench import Advance, Measurement
from backend.bench.options import option
from dataflow.expressions.expression import Column
from dataflow.expressions.source import Key
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Columns, LeftJoin
from dataflow.runtime.engine import Engine, View
from dataflow.state.delta import Delta
from dataflow.values.types import BIGINT, INT, Row, text

STORIES = 500_000
WRITES = 300_000
CLIENTS = 64
ALONE = 20_000
PATHWAY_VOTES = 300_000
PUBLISHED = {"Noria as published": 240_000.0, "DBToaster as published": 520_000.0}

TITLE = text(100)
STORIES_TABLE, VOTES_TABLE = 1, 2
STORY = Base(STORIES_TABLE, (INT, TITLE), (0,), "stories")
VOTE = Base(VOTES_TABLE, (INT, INT, INT), (0,), "votes")
VOTE_COUNT = Aggregate(VOTE, (2,), (AggregateFunction("count_star", (), BIGINT),))
STORIES_WITH_VOTE_COUNT = LeftJoin(
    STORY, VOTE_COUNT, ((0, 0),), None, (Column(0, INT), Column(1, TITLE), Column(3, BIGINT))
)


class Stories:
    """The base tables: stories by id, and votes that nobody has cast yet."""

    def __init__(self, count: int) -> None:
        self.rows: list[Row] = [(story, f"title {story}") for story in range(count)]

    def lookup(self, table: int, columns: Columns, keys: Sequence[Key]) -> list[Iterable[Row]]:
        if table == VOTES_TABLE:
            return [()] * len(keys)
        return [self.rows[key : key + 1] for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return self.rows if table == STORIES_TABLE else ()

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return True


class Vote:
    """The running dataflow and the queue of writes that wait for an epoch."""

    def __init__(self, stories: int) -> None:
        self.engine = Engine(Stories(stories))
        self.view: View = self.engine.add_view(STORIES_WITH_VOTE_COUNT, (0,))
        self.stories = stories
        self.queue: Delta = []
        self.epoch = 0

    def fill(self) -> None:
        for start in range(0, self.stories, 1000):
            self.engine.upquery(self.view, [(story,) for story in range(start, min(start + 1000, self.stories))])
        self.view.arrangement.touched.clear()

    def evict(self) -> None:
        self.engine.enforce(0)

    def submit(self, row: Row) -> None:
        self.queue.append((row, 1))

    def run_epoch(self) -> int:
        """Apply what waits; the number of keys to publish."""
        waiting, self.queue = self.queue, []
        self.epoch += 1
        self.engine.apply(self.epoch, {VOTES_TABLE: waiting})
        changed = 0
        for _, keys, amended in self.engine.take_touched():
            changed += len(keys) + len(amended)
        return changed


def votes(count: int, stories: int, seed: int = 1) -> list[Row]:
    draw = random.Random(seed)
    return [(number, number % 1000, draw.randrange(stories)) for number in range(count)]


def writes_per_second(vote: Vote, rows: Sequence[Row], at_once: int) -> float:
    """Single writes of `at_once` clients, each with one write under way."""
    clients = deque(rows)
    start = time.perf_counter()
    while clients:
        for _ in range(min(at_once, len(clients))):
            vote.submit(clients.popleft())
        vote.run_epoch()
    return len(rows) / (time.perf_counter() - start)


def batched_writes_per_second(vote: Vote, rows: Sequence[Row], batch_rows: int) -> float:
    """Writes that come as batches, each an epoch of its own."""
    start = time.perf_counter()
    for first in range(0, len(rows), batch_rows):
        vote.queue = [(row, 1) for row in rows[first : first + batch_rows]]
        vote.run_epoch()
    return len(rows) / (time.perf_counter() - start)


def latency_us(vote: Vote, rows: Sequence[Row]) -> float:
    """Median time of a write that is alone in its epoch."""
    times = []
    for row in rows:
        start = time.perf_counter()
        vote.submit(row)
        vote.run_epoch()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


@dataclass(frozen=True)
class Options:
    workers: int = option(1, "shards, all in this process, beside one worker")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    if options.workers > 1:
        from backend.bench.dataflow_workers import run_workers

        yield from run_workers(advance, options.workers)
        return
    advance("filling every key", 0.05)
    vote = Vote(STORIES)
    vote.fill()
    rows = votes(WRITES, STORIES)
    # As a worker process does: state has no cycles, so looking for garbage in it is in vain.
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    advance("warming up", 0.3)
    writes_per_second(vote, rows[: WRITES // 10], CLIENTS)
    advance("filled keys", 0.35)
    filled = writes_per_second(vote, rows, CLIENTS)
    advance("batches", 0.45)
    batch = batched_writes_per_second(vote, rows, 1000)
    advance("one by one", 0.5)
    alone = latency_us(vote, rows[:ALONE])
    advance("evicting every key", 0.55)
    vote.evict()
    advance("evicted keys", 0.65)
    evicted = writes_per_second(vote, rows, CLIENTS)
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    advance("pathway", 0.7)
    measured = pathway_votes_per_second()
    peers = {"pathway": measured} if measured else {}
    yield Measurement("dataflow", "vote_write_filled", filled, "writes/s", {**peers, **PUBLISHED})
    yield Measurement("dataflow", "vote_write_evicted", evicted, "writes/s", {**peers, "Noria as published": 1_000_000.0})
    yield Measurement("dataflow", "vote_write_batch", batch, "writes/s", {**peers, **PUBLISHED})
    yield Measurement("dataflow", "vote_write_latency", alone, "µs", {})


PATHWAY_PROGRAM = """
import random, sys, time
import pathway as pw

STORIES, VOTES = int(sys.argv[1]), int(sys.argv[2])
draw = random.Random(1)

class Story(pw.Schema):
    number: int = pw.column_definition(primary_key=True)
    title: str

class Vote(pw.Schema):
    user: int
    story: int

class Stories(pw.io.python.ConnectorSubject):
    def run(self):
        for number in range(STORIES):
            self.next(number=number, title="title")

class Votes(pw.io.python.ConnectorSubject):
    def run(self):
        for number in range(VOTES):
            self.next(user=number % 1000, story=draw.randrange(STORIES))

stories = pw.io.python.read(Stories(), schema=Story)
votes = pw.io.python.read(Votes(), schema=Vote)
counts = votes.groupby(votes.story).reduce(votes.story, total=pw.reducers.count())
joined = stories.join_left(counts, stories.number == counts.story).select(
    stories.number, stories.title, counts.total
)
seen = [0]

def changed(key, row, time, is_addition):
    seen[0] += 1

clock = time.perf_counter
pw.io.subscribe(joined, changed)
start = clock()
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
print("votes_per_second", VOTES / (clock() - start))
"""


def pathway_votes_per_second(stories: int = STORIES, count: int = PATHWAY_VOTES) -> float | None:
    """The same dataflow in pathway, without the time that its stories take to load."""
    python = os.environ.get("MILLRACE_PATHWAY_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import pathway"], capture_output=True).returncode:
        return None
    times = []
    for votes_sent in (1, count):
        done = subprocess.run(
            [python, "-c", PATHWAY_PROGRAM, str(stories), str(votes_sent)], capture_output=True, text=True, check=True
        )
        times.append(votes_sent / float(done.stdout.rsplit("votes_per_second", 1)[1]))
    return count / max(times[1] - times[0], 1e-9)
