"""`millrace bench dataflow -- --workers N`: the vote dataflow on N shards in one process, beside one worker.

What is measured is CPU time, of all shards together, with every bundle encoded and decoded as between
processes. Votes are on the shard that stores them, their counts on that of the story. Both are measured in
turns, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

from backend.bench import Advance, Measurement
from backend.bench.dataflow import STORIES_TABLE, STORIES_WITH_VOTE_COUNT, VOTES_TABLE, Stories, Vote, votes
from backend.network.bundles import decode_bundle, encode_bundle
from dataflow.expressions.source import Key
from dataflow.plan.node import Columns
from dataflow.runtime.shard_messages import BeginEpoch, Outgoing, StartView, ToWorker, Upquery
from dataflow.runtime.shard_worker import ShardWorker
from dataflow.state.delta import Delta
from dataflow.values.types import Row

STORIES = 50_000
WRITES = 50_000
BATCH_ROWS = 1000
ALONE = 2_000
TURNS = 5


class StoriesOfShard(Stories):
    """Every so many-th story."""

    def __init__(self, count: int, shard: int, shard_count: int) -> None:
        super().__init__(count)
        self._shard, self._shard_count = shard, shard_count

    def lookup(self, table: int, columns: Columns, keys: Sequence[Key]) -> list[Iterable[Row]]:
        if table == VOTES_TABLE:
            return [()] * len(keys)
        return [self.rows[key : key + 1] if key % self._shard_count == self._shard else () for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return self.rows[self._shard :: self._shard_count] if table == STORIES_TABLE else ()


class VoteOfShards:
    """The running dataflow of all shards, whose bundles are passed on at once."""

    def __init__(self, stories: int, shard_count: int) -> None:
        sources = [StoriesOfShard(stories, each, shard_count) for each in range(shard_count)]
        self.workers = [ShardWorker(each, shard_count, source, clock=time.perf_counter) for each, source in enumerate(sources)]
        self.epoch = 0
        self.bundles = 0
        self._deliver([BeginEpoch(1, {}, (StartView(0, STORIES_WITH_VOTE_COUNT, (0,)),)) for _ in self.workers])
        self.epoch = 1
        for start in range(0, stories, BATCH_ROWS):
            wanted: list[list[Key]] = [[] for _ in self.workers]
            for key in range(start, min(start + BATCH_ROWS, stories)):
                wanted[self.workers[0].owner(key)].append(key)
            for worker, keys in zip(self.workers, wanted, strict=True):
                worker.handle(Upquery(start, 0, tuple(keys)))
            self.run_epoch([[] for _ in self.workers])

    def run_epoch(self, parts: Sequence[Delta]) -> None:
        self.epoch += 1
        self._deliver([BeginEpoch(self.epoch, {VOTES_TABLE: part} if part else {}) for part in parts])

    def _deliver(self, messages: Sequence[ToWorker]) -> None:
        waiting = deque(enumerate(messages))
        while waiting:
            shard, message = waiting.popleft()
            for effect in self.workers[shard].handle(message):
                if isinstance(effect, Outgoing):
                    self.bundles += 1
                    waiting.append((effect.to, decode_bundle(encode_bundle(effect.bundle))))

    def split(self, rows: Iterable[Row]) -> list[Delta]:
        """Votes on the shards that store them."""
        parts: list[Delta] = [[] for _ in self.workers]
        for row in rows:
            parts[row[0] % len(parts)].append((row, 1))  # type: ignore[operator, index]
        return parts


def run_workers(advance: Advance, shard_count: int) -> Iterator[Measurement]:
    advance("filling every key", 0.1)
    one, several = Vote(STORIES), VoteOfShards(STORIES, shard_count)
    one.fill()
    rows = votes(WRITES, STORIES)
    batches = [rows[start : start + BATCH_ROWS] for start in range(0, WRITES, BATCH_ROWS)]
    deltas = [[(row, 1) for row in batch] for batch in batches]
    parts = [several.split(batch) for batch in batches]
    single = [several.split([row]) for row in rows[:ALONE]]
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)

    def run_one() -> None:
        for delta in deltas:
            one.queue = delta
            one.run_epoch()

    def run_several() -> None:
        for each in parts:
            several.run_epoch(each)

    def run_single() -> None:
        for each in single:
            several.run_epoch(each)

    times: dict[str, list[float]] = {"one": [], "several": [], "single": []}
    for turn in range(TURNS):
        advance("one worker and several in turns", 0.3 + 0.7 * turn / TURNS)
        times["one"].append(_cpu_us(run_one) / WRITES)
        times["several"].append(_cpu_us(run_several) / WRITES)
        times["single"].append(_cpu_us(run_single) / ALONE)
    before = several.bundles
    several.run_epoch(single[0])
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    name = f"{shard_count}_workers"
    yield Measurement("dataflow", f"vote_cpu_{name}", median(times["several"]), "µs/write", {"one worker": median(times["one"])})
    yield Measurement("dataflow", f"vote_epoch_{name}", median(times["single"]), "µs/epoch", {})
    yield Measurement("dataflow", f"vote_bundles_{name}", several.bundles - before, "bundles/epoch", {})


def _cpu_us(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e6
