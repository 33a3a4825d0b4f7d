"""`millrace bench insert`: durable inserts, in batches and one by one, beside MariaDB.

Batches of 1,000 rows go straight to the worker, as the client library sends them. Single
rows are each a commit of their own, from one connection and from 16 at once: the epochs
commit those that wait together. MariaDB gets the same rows on the same disk, with
innodb_flush_log_at_trx_commit = 1.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from backend.bench import Advance, Measurement
from backend.bench.cluster import define, running, scratch
from backend.bench.mariadb import connect, mariadb
from backend.clustering.cluster import Cluster
from backend.clustering.node import Node
from backend.clustering.store import ABSENT, CommitPart, Committed, Write
from persistence.layout import TableWriter

BATCH_ROWS = 1000
BATCHES = 300
BATCHES_AT_ONCE = 4
SINGLE_S = 3.0
CONNECTIONS = 16
TABLE = "CREATE TABLE {} (id INT NOT NULL PRIMARY KEY, user INT NOT NULL, story_id INT NOT NULL, title VARCHAR(80))"


def run(advance: Advance) -> Iterator[Measurement]:
    with scratch() as folder:
        advance("starting millrace", 0.05)
        ours = asyncio.run(_ours(folder / "millrace", advance))
        (folder / "mariadb").mkdir()
        advance("starting MariaDB", 0.5)
        with mariadb(folder / "mariadb") as port:
            theirs = _theirs(port, advance) if port is not None else {}
    for metric, unit in (
        ("insert_batch", "rows/s"),
        ("insert_single_1", "rows/s"),
        ("insert_single_16", "rows/s"),
        ("insert_group_commit", "× one connection"),
    ):
        peers = {"MariaDB": theirs[metric]} if metric in theirs else {}
        yield Measurement("insert", metric, ours[metric], unit, peers)


def _rows(first: int, count: int) -> list[tuple[int, int, int, str]]:
    return [(n, n % 1000, n % 50_000, f"a title of some length {n}") for n in range(first, first + count)]


async def _ours(folder: Path, advance: Advance) -> dict[str, float]:
    async with running(folder) as (_, node):
        await define(node, "CREATE DATABASE bench")
        await define(node, *(TABLE.format(name) for name in ("batches", "one", "many")), database="bench")
        advance("batches", 0.15)
        figures = {"insert_batch": await _batches(node)}
        advance("one connection", 0.3)
        figures["insert_single_1"] = await _singles(node, "one", 1)
        advance(f"{CONNECTIONS} connections", 0.4)
        figures["insert_single_16"] = await _singles(node, "many", CONNECTIONS)
    return _with_group_commit(figures)


def _with_group_commit(figures: dict[str, float]) -> dict[str, float]:
    return figures | {"insert_group_commit": figures["insert_single_16"] / figures["insert_single_1"]}


async def _batches(node: Node) -> float:
    table = node.database.catalog.table("bench", "batches")
    writer = TableWriter(table)
    todo = iter(range(BATCHES))

    async def send() -> None:
        for batch in todo:
            rows = writer.stored_rows(_rows(batch * BATCH_ROWS, BATCH_ROWS))
            writes: list[Write] = [(key, ABSENT, value) for key, value in rows]
            result = await node.cluster.commit({0: CommitPart(writes, [])}, {table.id: table.version})
            assert isinstance(result, Committed), result

    started = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(BATCHES_AT_ONCE)))
    return BATCHES * BATCH_ROWS / (time.perf_counter() - started)


async def _singles(node: Node, name: str, connections: int) -> float:
    table = node.database.catalog.table("bench", name)
    writer = TableWriter(table)
    clusters = [Cluster(1, node.deployment.secret_bytes) for _ in range(connections)]
    addresses = await asyncio.to_thread(node.registry.workers)
    for cluster in clusters:
        cluster.set_addresses(addresses)
    deadline = time.perf_counter() + SINGLE_S
    numbers = iter(range(1_000_000_000))

    async def send(cluster: Cluster) -> None:
        while time.perf_counter() < deadline:
            [(key, value)] = writer.stored_rows(_rows(next(numbers), 1))
            result = await cluster.commit({0: CommitPart([(key, ABSENT, value)], [])}, {table.id: table.version})
            assert isinstance(result, Committed), result

    await asyncio.gather(*(send(cluster) for cluster in clusters))
    for cluster in clusters:
        cluster.close()
    return next(numbers) / SINGLE_S


def _theirs(port: int, advance: Advance) -> dict[str, float]:
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        for name in ("batches", "one", "many"):
            cursor.execute(TABLE.format(f"bench.{name}"))
    advance("MariaDB, batches", 0.6)
    figures = {"insert_batch": _their_batches(port)}
    advance("MariaDB, one connection", 0.8)
    figures["insert_single_1"] = _their_singles(port, "one", 1)
    advance(f"MariaDB, {CONNECTIONS} connections", 0.9)
    figures["insert_single_16"] = _their_singles(port, "many", CONNECTIONS)
    return _with_group_commit(figures)


def _their_batches(port: int) -> float:
    todo = iter(range(BATCHES))
    lock = threading.Lock()

    def next_batch() -> int | None:
        with lock:
            return next(todo, None)

    def send(cursor: Any) -> None:
        while (batch := next_batch()) is not None:
            values = ",".join(str(row) for row in _rows(batch * BATCH_ROWS, BATCH_ROWS))
            cursor.execute("INSERT INTO batches VALUES " + values)

    started = time.perf_counter()
    _in_threads(port, BATCHES_AT_ONCE, send)
    return BATCHES * BATCH_ROWS / (time.perf_counter() - started)


def _their_singles(port: int, name: str, connections: int) -> float:
    numbers = iter(range(1_000_000_000))
    deadline = time.perf_counter() + SINGLE_S

    def send(cursor: Any) -> None:
        while time.perf_counter() < deadline:
            cursor.execute(f"INSERT INTO {name} VALUES {_rows(next(numbers), 1)[0]}")

    _in_threads(port, connections, send)
    return next(numbers) / SINGLE_S


def _in_threads(port: int, count: int, work: Callable[[Any], None]) -> None:
    def run_one() -> None:
        with connect(port, "bench") as connection, connection.cursor() as cursor:
            work(cursor)

    threads = [threading.Thread(target=run_one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
