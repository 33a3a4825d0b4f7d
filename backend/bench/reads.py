"""`millrace bench reads`: lookups of a maintained view from one other process, while its table changes.

A view with a row for each key is filled. One process looks keys up through the client
library, one at a time and in batches of 1,000, with keys that are all as likely or follow
Zipf's law (1.08); meanwhile another changes 10,000 rows per second. Every row has a checksum,
and a run of its own checks that no row is ever torn. Beside it the same lookups as
requests over TCP, as from another machine, in batches of 100.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backend.bench import Advance, Measurement
from backend.bench.cluster import define, running, scratch
from backend.bench.options import option
from backend.client import AsyncDatabase, Database, View, connect
from backend.clustering.node import Node
from backend.clustering.store import ANY, CommitPart, Committed, Write
from backend.processes.settings import Deployment
from persistence.layout import TableWriter

WRITES_PER_S = 10_000
WRITE_BATCH_ROWS = 100
LOAD_BATCH_ROWS = 2_000
BATCH_KEYS = 1_000
TCP_BATCH_KEYS = 100
TCP_AT_ONCE = 8
ZIPF_EXPONENT = 1.08
TABLE = """CREATE TABLE articles (id INT NOT NULL PRIMARY KEY, title VARCHAR(80) NOT NULL,
    votes BIGINT NOT NULL, checksum BIGINT NOT NULL)"""
VIEW = "SELECT id, title, votes, checksum FROM articles WHERE id = ?"

Row = tuple[int, str, int, int]


@dataclass(frozen=True, slots=True)
class Options:
    keys: int = option(500_000, "number of keys")
    seconds: float = option(3.0, "how long each figure is measured")
    check_seconds: float = option(3.0, "how long rows are checked for being torn")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    with scratch() as folder:
        advance("starting millrace", 0.05)
        figures = asyncio.run(_measure(folder / "millrace", options, advance))
    for distribution in ("uniform", "zipf"):
        tcp = {
            "single": {"over TCP": figures[f"tcp_single_{distribution}"]},
            "batch": {f"over TCP, {TCP_BATCH_KEYS} keys": figures[f"tcp_batch_{distribution}"]},
        }
        for metric in (f"single_{distribution}", f"batch_{distribution}", f"batch_{distribution}_votes"):
            peers = tcp["single" if metric.startswith("single") else "batch"]
            yield Measurement("reads", metric, figures[metric], "keys/s", peers)
            yield Measurement("reads", f"{metric}_cpu", figures[f"{metric}_cpu"], "keys/s of CPU")
        metric = f"tcp_batch_{distribution}"
        yield Measurement("reads", metric, figures[metric], "keys/s")
        yield Measurement("reads", f"{metric}_cpu", figures[f"{metric}_cpu"], "keys/s of the client's CPU")
    yield Measurement("reads", "written_meanwhile", figures["written"], "rows/s")
    yield Measurement("reads", "rows_checked", figures["checked"], "rows")
    yield Measurement("reads", "rows_torn", figures["torn"], "rows")


def _row(key: int, votes: int) -> Row:
    title = f"an article with the number {key}"
    return (key, title, votes, _checksum(key, title, votes))


def _checksum(key: int, title: str, votes: int) -> int:
    return zlib.crc32(b"%d %s %d" % (key, title.encode(), votes))


async def _measure(folder: Path, options: Options, advance: Advance) -> dict[str, float]:
    async with running(folder, durability="os") as (_, node):
        await define(node, "CREATE DATABASE bench")
        await define(node, TABLE, database="bench")
        await _load(node, options.keys, lambda done: advance("loading", 0.1 + 0.2 * done))
        deployment = str(folder / "run" / "deployment.json")
        writer = await _start("write", deployment, options)
        reader = await _start("read", deployment, options)
        assert reader.stdout is not None
        figures: dict[str, float] = {}
        while line := await reader.stdout.readline():
            what, done, value = json.loads(line)
            advance(what, 0.3 + 0.65 * done)
            if value is not None:
                figures[what] = value
        if await reader.wait():
            raise RuntimeError("the reader failed")
        writer.terminate()
        output, _ = await writer.communicate()
        figures["written"] = float(output or 0)
    return figures


async def _start(part: str, deployment: str, options: Options) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "backend.bench.reads", part, deployment, json.dumps(asdict(options))]
    return await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)


async def _load(node: Node, count: int, progress: Callable[[float], None]) -> None:
    table = node.database.catalog.table("bench", "articles")
    writer = TableWriter(table)
    todo = iter(range(0, count, LOAD_BATCH_ROWS))

    async def send() -> None:
        for first in todo:
            rows = [_row(key, 0) for key in range(first, min(first + LOAD_BATCH_ROWS, count))]
            writes: list[Write] = [(key, ANY, value) for key, value in writer.stored_rows(rows)]
            assert isinstance(
                await node.cluster.commit({0: CommitPart(writes, [])}, {table.id: table.version}), Committed
            )
            progress(first / count)

    await asyncio.gather(*(send() for _ in range(2)))


# --- the process that writes


async def _write(deployment: Deployment, options: Options) -> None:
    """Change rows at a steady rate until terminated; then say how many it was per second."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    node = Node(deployment)
    await node.start()
    table = node.database.catalog.table("bench", "articles")
    writer = TableWriter(table)
    random = np.random.default_rng(5)
    started, written = time.perf_counter(), 0
    while not stopped.is_set():
        keys = np.unique(random.integers(0, options.keys, WRITE_BATCH_ROWS)).tolist()
        rows = [_row(key, written + place) for place, key in enumerate(keys)]
        writes: list[Write] = [(key, ANY, value) for key, value in writer.stored_rows(rows)]
        await node.cluster.commit({0: CommitPart(writes, [])}, {table.id: table.version})
        written += len(rows)
        ahead_s = written / WRITES_PER_S - (time.perf_counter() - started)
        if ahead_s > 0:
            await asyncio.sleep(ahead_s)
    print(written / (time.perf_counter() - started), flush=True)
    await node.stop()


# --- the process that reads


def _read(deployment: str, options: Options) -> None:
    with connect(deployment, "bench") as database:
        view = database.view(VIEW)
        count, seconds = options.keys, options.seconds
        for first in range(0, count, BATCH_KEYS):
            view.lookup_many(range(first, min(first + BATCH_KEYS, count)))
            if first % 20_000 == 0:
                _tell("filling the view", 0.3 * first / count)
        for number, (name, keys) in enumerate(_distributions(count)):
            _rate(f"single_{name}", 0.3 + 0.2 * number, keys, seconds, lambda some: _single(view, some))
            _rate(f"batch_{name}", 0.4 + 0.2 * number, keys, seconds, lambda some: _batches(view, some, None))
            _rate(f"batch_{name}_votes", 0.45 + 0.2 * number, keys, seconds, lambda some: _batches(view, some, ["votes"]))
        checked, torn = _check(view, count, options.check_seconds)
        _tell("checked", 0.75, checked)
        _tell("torn", 0.75, torn)
        for number, (name, keys) in enumerate(_distributions(count)):
            _over_tcp(f"tcp_single_{name}", 0.8 + 0.1 * number, database, keys, (1, 1), seconds)
            _over_tcp(f"tcp_batch_{name}", 0.85 + 0.1 * number, database, keys, (TCP_BATCH_KEYS, TCP_AT_ONCE), seconds)


def _tell(what: str, done: float, value: float | None = None) -> None:
    print(json.dumps([what, done, value]), flush=True)


def _distributions(key_count: int) -> Iterator[tuple[str, np.ndarray[Any, np.dtype[np.int64]]]]:
    random = np.random.default_rng(3)
    count = 400_000
    yield "uniform", random.integers(0, key_count, count)
    weights = 1 / np.arange(1, key_count + 1) ** ZIPF_EXPONENT
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(count))
    yield "zipf", random.permutation(key_count)[np.minimum(ranks, key_count - 1)]


def _single(view: View, keys: Any) -> None:
    lookup = view.lookup
    for key in keys.tolist():
        lookup(key)


def _batches(view: View, keys: Any, columns: list[str] | None) -> None:
    for batch in keys.reshape(-1, BATCH_KEYS):
        found = view.lookup_columns(batch, columns)
        assert len(found.present) == BATCH_KEYS


def _rate(what: str, done: float, keys: Any, seconds: float, read: Callable[[Any], None]) -> None:
    """Read slices of `keys` for a while; tell how many per second, and per second of processor time."""
    slice_keys, count = 20 * BATCH_KEYS, 0
    read(keys[:slice_keys])
    started, started_cpu = time.perf_counter(), time.thread_time()
    while (spent := time.perf_counter() - started) < seconds:
        first = count % len(keys)
        read(keys[first : first + slice_keys])
        count += slice_keys
    _tell(what, done, count / spent)
    _tell(f"{what}_cpu", done, count / (time.thread_time() - started_cpu))


def _check(view: View, count: int, seconds: float) -> tuple[int, int]:
    """Read rows both ways and check each: how many, and how many were wrong."""
    random = np.random.default_rng(11)
    checked = torn = 0
    started = time.perf_counter()
    while (spent := time.perf_counter() - started) < seconds:
        _tell(f"{checked:,} rows checked", 0.7 + 0.05 * spent / seconds)
        keys = random.integers(0, count, BATCH_KEYS)
        batch = view.lookup_columns(keys)
        columns = [each.tolist() if isinstance(each, np.ndarray) else each.to_pylist() for each in batch.columns.values()]
        rows = list(zip(*columns)) + [(view.lookup(key) or [(0, "", 0, 0)])[0] for key in keys.tolist()]
        for wanted, (key, title, votes, checksum) in zip(keys.tolist() * 2, rows, strict=True):
            torn += key != wanted or checksum != _checksum(key, title, votes)
        checked += len(rows)
    return checked, torn


def _over_tcp(what: str, done: float, database: Database, keys: Any, size: tuple[int, int], seconds: float) -> None:
    """As from another machine: every lookup is a request to the worker; `size` is keys in each, and how many at once."""
    batch_keys, at_once = size
    node = database._inner._node
    assert node is not None
    elsewhere = AsyncDatabase(node.database, "bench", shared=None)
    batches = keys[: len(keys) // batch_keys * batch_keys].reshape(-1, batch_keys).tolist()

    async def measure() -> None:
        view = await elsewhere.view(VIEW)
        count, started, started_cpu = 0, time.perf_counter(), time.process_time()

        async def ask() -> None:
            nonlocal count
            while time.perf_counter() - started < seconds:
                number, count = count, count + 1
                found = await view.lookup_many(batches[number % len(batches)])
                assert len(found) == batch_keys

        await asyncio.gather(*(ask() for _ in range(at_once)))
        _tell(what, done, count * batch_keys / (time.perf_counter() - started))
        _tell(f"{what}_cpu", done, count * batch_keys / (time.process_time() - started_cpu))

    database._loop.run(measure())


if __name__ == "__main__":
    if sys.argv[1] == "write":
        asyncio.run(_write(Deployment.load(sys.argv[2]), Options(**json.loads(sys.argv[3]))))
    else:
        _read(sys.argv[2], Options(**json.loads(sys.argv[3])))
