"""A view that never ends is found by what its thread runs, and set aside by the next worker, or by shard 0 of several."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from backend.network.program_messages import AddView
from backend.network.view_messages import EndedViews, FillReported, ViewsKept
from backend.views.hung_views import HungViews, running
from backend.views.view_host import ViewHost
from backend.views.view_shard import ViewShard
from controller.catalog import encode_node, encode_table
from dataflow.commit.epoch_effects import ApplyEpoch, PersistEpoch
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.expressions.expression import Column
from dataflow.functions import call
from dataflow.functions.registry import function
from dataflow.plan.node import Base, Join
from dataflow.values.conversion import Domain
from dataflow.values.types import BIGINT
from persistence.layout import TableWriter
from persistence.shard_store import ShardStore
from tests.tables import table_of

TABLE = table_of((BIGINT, BIGINT))
VERSIONS = {TABLE.id: TABLE.version}
ENDLESS = 13
entered, released = threading.Event(), threading.Event()


@function("endless for 13", arguments=(Domain.INTEGER,), result=BIGINT, deterministic=True)
def endless(value: int) -> int:
    if value == ENDLESS:
        entered.set()
        released.wait(60)
    return value


@pytest.mark.parametrize("key", [(), (0,)], ids=["while it follows", "while a key is filled"])
def test_a_view_that_never_ends_is_named_and_set_aside_by_the_next_worker(tmp_path: Path, key: tuple[int, ...]) -> None:
    entered.clear()
    released.clear()
    store, writer, hung = ShardStore(tmp_path / "shard", "os"), TableWriter(TABLE), HungViews(tmp_path / "hung")
    host, base = ViewHost(store, 1 << 30), Base(TABLE.id, (BIGINT, BIGINT), (0,))
    slow = Join((base,), outputs=(Column(0, BIGINT), call("endless for 13", Column(1, BIGINT))))
    asked = msgspec.msgpack.encode([key and (2,)])

    def write(epoch: int, row: tuple[int, int]) -> None:
        persisted = PersistEpoch(epoch, dict(writer.stored_rows([row])), [], {}, None, True)
        changes = host.changes(persisted)
        store.persist_epoch(persisted)
        host.apply(changes)

    def work() -> None:
        write(2, (2, ENDLESS))
        host.lookup(b"slow", asked)

    write(1, (1, 1))
    for name, node, columns in ((b"rows", base, (0,)), (b"slow", slow, key)):
        assert host.add(AddView(name, encode_node(node), columns, [encode_table(TABLE)]), VERSIONS)
    worker = threading.Thread(target=work)
    worker.start()
    assert entered.wait(30)
    assert worker.ident is not None
    found = running(sys._current_frames()[worker.ident], host.views)
    released.set()
    worker.join()
    assert found == {b"slow"}
    hung.note(found)

    successor = ViewHost(store, 1 << 30)
    successor.hung = HungViews(tmp_path / "hung").names
    assert successor.add(AddView(b"rows", encode_node(base), (0,), [encode_table(TABLE)]), VERSIONS)
    assert not successor.add(AddView(b"slow", encode_node(slow), key, [encode_table(TABLE)]), VERSIONS)
    [aside] = [each for each in successor.status().views if each.is_set_aside]
    assert aside.name == b"slow" and "stood still" in aside.reason
    hung.note(frozenset())  # it went on after all
    assert not HungViews(tmp_path / "hung").names
    host.close()
    successor.close()


class AtOnce:
    """Work is done when it is given."""

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        try:
            work()
        except Exception as error:
            done(error)
        else:
            done(None)

    def renew(self) -> None: ...

    def close(self) -> None: ...


class Shards:
    """The views of two shards, and what happens to the epochs that they bring about; one shard is its own `Outside`."""

    def __init__(self, folder: Path) -> None:
        self.failed: list[ViewsFailed] = []
        self.sent: list[tuple[int, bytes]] = []
        self.transitions: tuple[bytes, ...] = ()
        self.stores = [ShardStore(folder / str(shard), "os") for shard in range(2)]
        self.shards = [ViewShard(shard, 2, store, 1 << 30, self, AtOnce()) for shard, store in enumerate(self.stores)]

    def send_bundle(self, to: int, payload: bytes) -> None:
        self.sent.append((to, payload))

    def views_applied(self) -> None: ...

    def want_epoch(self) -> None: ...

    def views_failed(self, failed: ViewsFailed) -> None:
        self.failed.append(failed)
        self.shards[0].transitions.blame(failed)

    def views_used(self, views: list[bytes]) -> None: ...

    def fill_reported(self, report: FillReported) -> None:
        self.shards[0].fill_reported(report)

    def views_ended(self, ended: EndedViews) -> None:
        self.shards[0].transitions.ended(ended)

    def keys_wanted(self, views: list[bytes]) -> None:
        self.shards[0].transitions.keys_wanted(views)

    def views_kept(self, kept: ViewsKept) -> None:
        self.shards[0].transitions.kept_reported(kept, VERSIONS)

    def change_views(self, transition: bytes) -> bool:
        self.transitions += (transition,)
        return True

    def run_epoch(self, epoch: int, *rows: tuple[int, int]) -> None:
        transitions, self.transitions = self.transitions, ()
        for shard, store in zip(self.shards, self.stores, strict=True):
            writes = dict(TableWriter(TABLE).stored_rows(list(rows))) if shard is self.shards[1] else {}
            persisted = PersistEpoch(epoch, writes, [], {}, None, True)
            shard.collect(persisted)
            store.persist_epoch(persisted)
            shard.apply(ApplyEpoch(epoch, 0, transitions), VERSIONS)
        while self.sent:
            to, payload = self.sent.pop(0)
            self.shards[to].receive(payload)


def test_of_several_workers_a_view_that_never_ends_is_named_and_set_aside_for_all(tmp_path: Path) -> None:
    entered.clear()
    released.clear()
    base = Base(TABLE.id, (BIGINT, BIGINT), (0,))
    slow = Join((base,), outputs=(Column(0, BIGINT), call("endless for 13", Column(1, BIGINT))))
    views = [AddView(name, encode_node(node), (), [encode_table(TABLE)], names=(name.decode(),)) for name, node in ((b"rows", base), (b"slow", slow))]
    shards = Shards(tmp_path / "before")
    for view in views:
        shards.shards[0].transitions.add(None, 0, view, VERSIONS)  # type: ignore[arg-type]
    shards.run_epoch(1, (1, 1))
    worker = threading.Thread(target=lambda: shards.run_epoch(2, (2, ENDLESS)))
    worker.start()
    assert entered.wait(30) and worker.ident is not None
    frame = sys._current_frames()[worker.ident]
    found = [each.running(frame) for each in shards.shards]
    released.set()
    worker.join()
    assert frozenset({b"slow"}) in found and frozenset({b"rows"}) not in found
    assert not shards.failed

    after = Shards(tmp_path / "after")
    after.shards[1].hung = frozenset({b"slow"})
    for view in views:
        after.shards[0].transitions.add(None, 0, view, VERSIONS)  # type: ignore[arg-type]
    after.run_epoch(1, (1, 1))
    [failed] = after.failed
    assert (failed.shard, failed.suspects, failed.is_certain) == (1, (b"slow",), True)
    [aside] = [each for each in after.shards[0].status().views if each.is_set_aside]
    assert aside.name == b"slow" and aside.names == ("slow",) and "stood still" in aside.reason
    for each in (*shards.shards, *after.shards):
        each.close()


def test_a_large_transaction_that_is_never_followed_to_its_end_ends_the_worker(tmp_path: Path) -> None:
    """The event loop goes on meanwhile."""
    program = f"""
import asyncio, pathlib, time
from backend.views.hung_views import HungViews

async def main():
    hung = HungViews(pathlib.Path({str(tmp_path / "hung")!r}), patience_s=0.1)
    hung.watch(lambda frame: frozenset([frame.f_code.co_name.encode()]))
    def follow():
        with hung.limited(10):
            time.sleep(60)
    await asyncio.to_thread(follow)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 1
    assert HungViews(tmp_path / "hung").names == {b"follow"}
