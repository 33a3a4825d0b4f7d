"""The life of a worker inside a Spark task: open the shard, register, serve until told to stop.

The task never ends by itself. If the process dies Spark runs the task again, which opens the
same LevelDB database at its last committed epoch. A process whose Spark is gone ends too, so
that the shard's database is free for its successor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from backend.network.messages import SetTables
from backend.network.transport import Peer, connect
from backend.processes.data_directory import close_umask
from backend.processes.heartbeat import Heartbeat
from backend.processes.records import begin_records
from backend.processes.settings import Deployment, own_address
from backend.shared_memory.segment import SegmentNames
from backend.views.hung_views import HungViews
from backend.views.small_tables import ROWS_MAX
from backend.worker.refusing_worker import RefusingWorker
from backend.worker.worker import Worker
from controller.catalog import Catalog, encode_table
from controller.registry import Address, Registry
from dataflow.errors import MillraceError, Retryable
from dataflow.schema import Table
from persistence.files.free_space import disk_full, free_bytes
from persistence.files.shadow import needed_bytes
from persistence.shard_store import Durability, ShardStore
from persistence.sweeping import sweep

LOCK_PATIENCE_S = 60.0
OUTCOME_EPOCHS = 100_000
"""Clients that committed nothing for so long have gone without asking what became of a transaction."""
ORPHAN_CHECK_S = 0.5
RECONNECT_S = 0.1
SWEEP_CHECK_S = 5.0
MEMORY_CHECK_S = 1.0
SWEEP_PAUSE_S = 0.005
ROOM_CHECK_S = 1.0

log = logging.getLogger(__name__)


def run_worker(shard: int, deployment: Deployment) -> None:
    """Serve the shard until it is stopped; what a Spark task runs."""
    close_umask()  # Spark's executors may have another
    begin_records(deployment, f"worker-{shard}")
    try:
        uvloop.run(_serve(shard, deployment))
    except Exception:
        log.exception("worker %d failed", shard)
        raise


def catalog_tables(catalog: Catalog, changed: Sequence[Table] = ()) -> SetTables:
    """What workers need to know of a catalog, in which these tables have just changed."""
    return SetTables(catalog.version, dict(catalog.versions), catalog.next_table_id, [encode_table(each) for each in changed])


async def _serve(shard: int, deployment: Deployment) -> None:
    sign = Heartbeat(deployment.secret_bytes, f"worker-{shard}")
    orphaned = asyncio.ensure_future(_until_orphaned())
    durability: Durability = "os" if deployment.durability == "os" else "fsync"
    folder = deployment.data_path / "shards" / str(shard)
    try:
        store = await _open(folder, durability)
    except MillraceError as error:
        if isinstance(error, Retryable):
            raise
        sign.follow(deployment.watchdog_s)
        await _refuse(shard, error, deployment, orphaned)
        return
    sign.follow(deployment.watchdog_s)
    store.prune_transactions(store.epoch - OUTCOME_EPOCHS)
    names = SegmentNames(deployment.data, shard)
    # The store is ours, so a predecessor is dead, and what it has left must not pass for current.
    names.remove_stale()
    worker = Worker(shard, deployment.shard_count, store, deployment.shard_memory_bytes, names)
    worker.views.keep_idle(deployment.idle_view_s)
    worker.views.keep_small(ROWS_MAX)
    worker.views.watch(HungViews(folder.parent / f"{shard}.hung-views", deployment.watchdog_s))
    server, port = await worker.serve(own_address(deployment.internal_host), deployment.secret_bytes)
    registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
    await asyncio.to_thread(registry.start, 60.0)
    address = Address(
        own_address(deployment.internal_host),
        port,
        os.getpid(),
        deployment.shard_count,
        needed_bytes=0 if store.shadow is None else store.shadow.needed_bytes,
        takes_origins=deployment.takes_origins,
    )
    await asyncio.to_thread(registry.register_worker, shard, address)
    # Registered first: a change of the catalog from now on is sent here.
    catalog = await asyncio.to_thread(registry.load_catalog)
    worker.tables.learn(catalog_tables(catalog))
    worker.garbage.begin()
    worker.holds.begin()
    log.info("shard %d serves on port %d at epoch %d", shard, port, store.epoch)
    limiting = asyncio.ensure_future(_limit_memory(worker))
    sweeping = asyncio.ensure_future(_sweep(worker))
    following = [asyncio.ensure_future(_follow(worker, other, registry, deployment)) for other in range(shard)]
    await _until_end(worker.stopped, orphaned, folder if store.shadow is not None else None)
    log.info("shard %d stops", shard)
    sweeping.cancel()
    limiting.cancel()
    for each in following:
        each.cancel()
    server.close()
    worker.close()
    await asyncio.to_thread(registry.stop)


async def _refuse(shard: int, error: MillraceError, deployment: Deployment, orphaned: asyncio.Future[None]) -> None:
    """Say why the shard is not served until that is over, or somebody stops it."""
    log.critical("shard %d is not served: %s", shard, error)
    worker = RefusingWorker(shard, error)
    host = own_address(deployment.internal_host)
    server, port = await worker.serve(host, deployment.secret_bytes)
    registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
    await asyncio.to_thread(registry.start, 60.0)
    folder = None if worker.damage else deployment.data_path / "shards" / str(shard)
    needed = 0 if folder is None else needed_bytes(folder)
    address = Address(host, port, os.getpid(), deployment.shard_count, worker.damage, needed, deployment.takes_origins)
    await asyncio.to_thread(registry.register_worker, shard, address)
    await _until_end(worker.stopped, orphaned, folder)
    server.close()
    await asyncio.to_thread(registry.stop)


async def _until_end(stopped: asyncio.Event, orphaned: asyncio.Future[None], folder: Path | None) -> None:
    """Until the worker has to end. If there is room for writes in the `folder` again, Spark starts the next one."""
    room = asyncio.ensure_future(_until_room(folder))
    ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(stopped.wait()), orphaned, room]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if room.done():
        log.info("the disk has room again")
        os._exit(1)  # as if it were killed: what clients have asked for is asked again
    room.cancel()


async def _until_room(folder: Path | None) -> None:
    while folder is None or free_bytes(folder) < needed_bytes(folder):
        await asyncio.sleep(ROOM_CHECK_S)


async def _open(path: Path, durability: Durability) -> ShardStore:
    """Open the shard's database, waiting for a predecessor that is still going down."""
    deadline = asyncio.get_running_loop().time() + LOCK_PATIENCE_S
    while True:
        try:
            store = ShardStore(path, durability)
            if store.shadow is not None and store.prepared() is not None:
                store.abort()  # what became of the epoch could not be written down, and is not known before
                raise disk_full(path, needed_bytes(path))
            return store
        except Retryable:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.05)


async def _sweep(worker: Worker) -> None:
    """Remove what dropped tables left behind, a slice at a time, whenever the catalog has changed."""
    swept = 0
    while True:
        await asyncio.sleep(SWEEP_CHECK_S)
        version, tables = worker.tables.catalog_version, worker.epochs.tables
        # What a large transaction has written comes late.
        is_free = worker.epochs.idle and worker.store.can_delete and not worker.store.is_moving
        if version != swept and is_free and tables is worker.epochs.tables:
            slices = sweep(worker.store, tables, worker.tables.next_table_id)
            while await asyncio.to_thread(next, slices, slices) is not slices:
                await asyncio.sleep(SWEEP_PAUSE_S)
            swept = version


async def _limit_memory(worker: Worker) -> None:
    """Keep the views within their memory."""
    while True:
        await asyncio.sleep(MEMORY_CHECK_S)
        try:
            worker.enforce_limit()
        except Exception:  # the next check may go well; without any, memory would grow for good
            log.exception("the memory limit could not be enforced")


async def _until_orphaned() -> None:
    """Until the process that started this one is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(ORPHAN_CHECK_S)
    log.warning("Spark is gone")


async def _follow(worker: Worker, shard: int, registry: Registry, deployment: Deployment) -> None:
    """Keep a connection to another shard, wherever it is."""
    while True:
        lost = asyncio.Event()

        def on_lost(peer: Peer, lost: asyncio.Event = lost) -> None:
            worker.shard_lost(peer)
            lost.set()

        try:
            addresses = await asyncio.to_thread(registry.workers)
            if shard in addresses:
                where = addresses[shard]
                peer = await connect(where.host, where.port, deployment.secret_bytes, worker.from_shard, on_lost=on_lost)
                worker.shard_found(shard, peer)
                await lost.wait()
        except (OSError, TimeoutError, Retryable) as error:  # ZooKeeper may be away for a while too
            log.info("shard %d is not there yet: %s", shard, error)
        await asyncio.sleep(RECONNECT_S)


if __name__ == "__main__":
    run_worker(int(sys.argv[1]), Deployment.load(sys.argv[2]))
