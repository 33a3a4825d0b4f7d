"""A view that never ends is found by what the event loop's thread runs, and set aside by the next worker."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import msgspec
import pytest

from backend.hung_views import HungViews, running
from backend.view_host import ViewHost
from controller.catalog import encode_node, encode_table
from dataflow.conversion import Domain
from dataflow.epoch_effects import PersistEpoch
from dataflow.expression import Column
from dataflow.functions import call
from dataflow.functions.registry import function
from dataflow.node import Base, Join
from dataflow.types import BIGINT
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
        assert host.add(name, encode_node(node), columns, [encode_table(TABLE)], VERSIONS)
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
    assert successor.add(b"rows", encode_node(base), (0,), [encode_table(TABLE)], VERSIONS)
    assert not successor.add(b"slow", encode_node(slow), key, [encode_table(TABLE)], VERSIONS)
    [aside] = [each for each in successor.status().views if each.is_set_aside]
    assert aside.name == b"slow" and "stood still" in aside.reason
    hung.note(frozenset())  # it went on after all
    assert not HungViews(tmp_path / "hung").names
    host.close()
    successor.close()
