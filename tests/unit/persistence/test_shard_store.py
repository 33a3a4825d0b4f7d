"""What survives in a shard's store, whatever interrupts it."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dataflow.commit.epoch_effects import PersistEpoch, PreparedEpoch
from dataflow.commit.epoch_messages import ABSENT, ANY, StagePart, TransactionId
from dataflow.commit.large_writes import LargeWrites
from dataflow.errors import CorruptState, Retryable
from persistence.files import acknowledged
from persistence.key_gaps import KeyGaps
from persistence.layout import KINDS, fence
from persistence.shard_store import HISTORY_EPOCHS, ShardStore

CLIENT = b"client-1"
ROOT = Path(__file__).parents[3]


def epoch(
    number: int,
    writes: dict[bytes, bytes | None] | None = None,
    transactions: list[TransactionId] | None = None,
    settled: dict[bytes, int] | None = None,
    decision: tuple[TransactionId, ...] | None = None,
) -> PersistEpoch:
    return PersistEpoch(number, writes or {}, transactions or [], settled or {}, decision, durable=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ShardStore]:
    store = ShardStore(tmp_path / "shard")
    yield store
    store.abort()


def crashed(store: ShardStore) -> ShardStore:
    """The store as it opens after its process ended without closing it."""
    store.abort()
    return ShardStore(store.path)


def test_what_an_epoch_wrote_carries_its_version(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"a": b"1", b"b": b"2"}))
    store.persist_epoch(epoch(5, {b"b": b"3"}))
    assert store.get(b"a") == (1, b"1")
    assert store.get(b"b") == (5, b"3")
    assert store.get(b"c") is None
    assert (store.version_of(b"b"), store.version_of(b"c")) == (5, ABSENT)
    assert store.epoch == 5


def test_a_deleted_key_is_absent(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"a": b"1"}))
    store.persist_epoch(epoch(2, {b"a": None}))
    assert store.get(b"a") is None
    assert store.version_of(b"a") == ABSENT


def test_many_keys_in_one_gap_are_known_to_be_absent(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"a%04d" % number: b"1" for number in (*range(100), 200)}))
    assert store.are_absent([b"a%04d" % number for number in range(199, 99, -1)])
    assert store.are_absent([b"a%04d" % number for number in range(201, 300)])
    assert not store.are_absent([b"a%04d" % number for number in range(150, 201)]), "the last is there"
    assert not store.are_absent([b"a%04d" % number for number in range(99, 150)]), "the first is there"
    assert not store.are_absent([b"a%04d" % number for number in range(150, 250)]), "one between them is"


def test_a_gap_that_takes_long_to_see_is_not_looked_for_again_for_a_while() -> None:
    looks: list[bytes] = []

    def first_key(start: bytes, stop: bytes) -> bytes | None:
        looks.append(start)
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass
        return None

    gaps = KeyGaps(first_key, lambda start, stop: False)
    keys = [b"%04d" % number for number in range(100)]
    assert [gaps.have(keys) for _ in range(102)] == [True, *[False] * 100, True]
    assert len(looks) == 2


def test_a_crash_keeps_every_applied_epoch(store: ShardStore) -> None:
    store.persist_epoch(epoch(3, {b"a": b"1"}, [(CLIENT, 7)], decision=((CLIENT, 7),)))
    after = crashed(store)
    assert after.epoch == 3
    assert after.get(b"a") == (3, b"1")
    assert after.epoch_of_transaction((CLIENT, 7)) == 3
    assert after.decision(3) == ((CLIENT, 7),)
    assert after.decisions() == {3: ((CLIENT, 7),)}
    after.abort()


def test_a_prepared_epoch_survives_until_it_is_applied(store: ShardStore) -> None:
    record = PreparedEpoch(4, {b"a": b"1", b"b": None}, [(CLIENT, 1)], [((CLIENT, 2), {b"c": b"\0\xff"})])
    assert store.prepared() is None
    store.persist_prepared(record)
    after = crashed(store)
    assert after.prepared() == record
    assert after.epoch == 0
    after.persist_epoch(epoch(4, record.writes))
    assert after.prepared() is None
    again = crashed(after)
    assert again.prepared() is None
    assert again.get(b"a") == (4, b"1")
    again.abort()


def test_discarding_takes_only_the_epoch_that_is_named(store: ShardStore) -> None:
    store.persist_prepared(PreparedEpoch(4, {}, [], []))
    store.discard_prepared(3)
    assert store.prepared() is not None
    store.discard_prepared(4)
    assert store.prepared() is None


def test_a_view_sees_nothing_that_is_applied_later(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"k1": b"old", b"k2": b"x"}))
    view = store.view()
    store.persist_epoch(epoch(2, {b"k1": b"new", b"k2": None, b"k3": b"y"}))
    assert view.epoch == 1
    assert view.get_many([b"k1", b"k3"]) == [(1, b"old"), None]
    assert list(view.scan(b"k", b"l")) == [[(b"k1", 1, b"old"), (b"k2", 1, b"x")]]
    assert list(store.view().scan(b"k", b"l")) == [[(b"k1", 2, b"new"), (b"k3", 2, b"y")]]


def test_recent_epochs_stay_readable_and_old_ones_do_not(store: ShardStore) -> None:
    last = 4 * HISTORY_EPOCHS
    for number in range(2, last + 1, 2):
        store.persist_epoch(epoch(number, {b"k": str(number).encode()}))
    for wanted, seen in (
        (last, last),
        (last + 9, last),
        (last - 1, last - 2),
        (last - 2, last - 2),
        (last - 40, last - 40),
    ):
        found = str(seen).encode()
        view = store.view_at(wanted)
        assert view is not None
        stored = view.get(b"k")
        assert stored is not None and stored[1] == found
    assert store.view_at(10) is None


def test_a_scan_goes_through_all_chunks_in_both_directions(store: ShardStore) -> None:
    keys = [b"k" + number.to_bytes(4, "big") for number in range(3000)]
    store.persist_epoch(epoch(1, dict.fromkeys(keys, b"v") | {b"j": b"", b"l": b""}))
    forward = [key for chunk in store.view().scan(b"k", b"l") for key, _, _ in chunk]
    backward = [key for chunk in store.view().scan(b"k", b"l", reverse=True) for key, _, _ in chunk]
    assert forward == keys
    assert backward == keys[::-1]
    backward = [key for chunk in store.view().scan(keys[7], keys[8], reverse=True) for key, _, _ in chunk]
    assert backward == [keys[7]]
    assert list(store.view().scan(b"l", b"k")) == []


def test_a_resolved_scan_gives_the_rows_in_index_order(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"r1": b"row one", b"r2": b"row two", b"ia2": b"2", b"ib1": b"1"}))
    rows = [(b"r2", 1, b"row two"), (b"r1", 1, b"row one")]
    assert list(store.view().scan(b"i", fence(b"i"), resolve=b"r")) == [rows]
    assert list(store.view().scan(b"i", fence(b"i"), resolve=b"r", reverse=True)) == [rows[::-1]]


def test_an_index_entry_without_its_row_is_corrupt(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"i1": b"1"}))
    with pytest.raises(CorruptState):
        list(store.view().scan(b"i", fence(b"i"), resolve=b"r"))


def test_outcomes_are_kept_until_their_client_settles_them(store: ShardStore) -> None:
    for number in range(1, 5):
        store.persist_epoch(epoch(number, {}, [(CLIENT, number * 10)], {CLIENT: (number - 1) * 10}))
    known = [store.epoch_of_transaction((CLIENT, number * 10)) for number in range(1, 5)]
    assert known == [None, None, 3, 4]
    after = crashed(store)
    assert [after.epoch_of_transaction((CLIENT, number * 10)) for number in range(1, 5)] == known
    after.abort()


def test_results_of_statements_are_kept_as_long_as_their_outcome(store: ShardStore) -> None:
    first, second = (b"c", 1), (b"c", 2)
    store.persist_epoch(replace(epoch(1, transactions=[first, second]), results={first: (5, -1)}))
    store = crashed(store)
    assert store.results_of_transaction(first) == (5, -1)
    assert store.results_of_transaction(second) == ()
    assert store.epoch_of_transaction(first) == store.epoch_of_transaction(second) == 1
    store.persist_epoch(epoch(2, settled={b"c": 2}))
    assert store.results_of_transaction(first) == ()
    assert crashed(store).epoch_of_transaction(first) is None


def test_outcomes_of_clients_that_went_away_are_pruned(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {}, [(b"gone", 1), (CLIENT, 1)]))
    store.persist_epoch(epoch(2, {}, [(CLIENT, 2)]))
    store.prune_transactions(before=2)
    assert store.epoch_of_transaction((b"gone", 1)) is None
    assert store.epoch_of_transaction((CLIENT, 1)) == 1


def test_discarded_decisions_are_gone(store: ShardStore) -> None:
    for number in (1, 2, 3):
        store.persist_epoch(epoch(number, decision=()))
    store.discard_decisions([1, 3])
    assert store.decisions() == {2: ()}
    assert store.decision(3) is None


def test_a_counter_never_repeats_a_number_after_a_crash(store: ShardStore) -> None:
    assert store.allocate(b"t1", 3) == 1
    assert store.allocate(b"t1", 1) == 4
    after = crashed(store)
    assert after.allocate(b"t1", 1) > 4
    after.abort()


def test_a_counter_skips_nothing_after_a_clean_close(tmp_path: Path) -> None:
    store = ShardStore(tmp_path / "shard")
    assert store.allocate(b"t1", 5) == 1
    store.close()
    store = ShardStore(tmp_path / "shard")
    assert store.allocate(b"t1", 1) == 6
    store.abort()
    store = ShardStore(tmp_path / "shard")
    assert store.allocate(b"t1", 1) > 6
    store.close()


def test_a_raised_counter_stays_raised_after_a_crash(store: ShardStore) -> None:
    store.allocate(b"t1", 0, floor=5000)
    assert store.counter_next(b"t1") == 5000
    after = crashed(store)
    assert after.allocate(b"t1", 1) >= 5000
    after.abort()


def test_keys_of_a_large_transaction_are_not_absent_while_they_come_to_their_places(store: ShardStore) -> None:
    transaction, writes = (CLIENT, 1), LargeWrites()
    part = StagePart(transaction, 0, [(b"a%04d" % number, ANY, b"1") for number in range(1000)], [])
    store.persist_part(part)
    writes.add(part.pairs())
    store.persist_epoch(PersistEpoch(1, {}, [transaction], {}, None, True, large=(transaction, writes)))
    is_left = True
    while is_left:
        assert store.are_absent([b"a%04d" % number for number in range(1000, 1100)])
        assert not store.are_absent([b"a%04d" % number for number in range(999, 1100)])
        is_left = store.move()
    assert not store.are_absent([b"a%04d" % number for number in range(999, 1100)])


def test_a_large_transaction_is_freed_in_slices_when_nobody_can_read_it_any_more(store: ShardStore) -> None:
    transaction, writes = (b"c", 1), LargeWrites()
    part = StagePart(transaction, 0, [(b"k%03d" % number, ANY, b"v") for number in range(25)], [])
    store.persist_part(part)
    writes.add(part.pairs())
    store.persist_epoch(PersistEpoch(1, {}, [transaction], {}, None, True, large=(transaction, writes)))
    view = store.view()
    while store.move():
        pass
    assert not store.free_landed(10) and view.get(b"k003") == (1, b"v")
    del view
    assert store.free_landed(10) and len(writes.values) == 15
    while store.free_landed(10):
        pass
    assert not writes.values and store.get(b"k003") == (1, b"v")


def test_a_range_is_deleted_in_slices(store: ShardStore) -> None:
    store.persist_epoch(epoch(1, {b"k%03d" % number: b"" for number in range(25)} | {b"l": b""}))
    first = store.delete_range(b"k", b"l", keys_max=10)
    assert first is not None
    second = store.delete_range(first, b"l", keys_max=10)
    assert second is not None and second > first
    assert store.delete_range(second, b"l", keys_max=10) is None
    assert list(store.view().scan(b"k", b"m")) == [[(b"l", 1, b"")]]


def test_facts_survive_a_crash(store: ShardStore) -> None:
    store.put_meta(b"shard", b"3 of 4")
    after = crashed(store)
    assert after.meta(b"shard") == b"3 of 4"
    assert after.meta(b"other") is None
    after.abort()


def test_a_store_in_use_is_refused(store: ShardStore) -> None:
    with pytest.raises(Retryable, match="in use by another process"):
        ShardStore(store.path)


def _open_in_another_process(path: Path, answers: multiprocessing.Queue[str]) -> None:
    try:
        ShardStore(path)
    except Retryable as error:
        answers.put(str(error))


def test_a_store_in_use_by_another_process_is_refused(store: ShardStore) -> None:
    spawn = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[str] = spawn.Queue()
    process = spawn.Process(target=_open_in_another_process, args=(store.path, answers))
    process.start()
    assert "in use by another process" in answers.get(timeout=30)
    process.join()


def test_a_store_of_another_format_is_refused(store: ShardStore) -> None:
    store._put(b"\0format", b"99")
    with pytest.raises(CorruptState, match="format"):
        crashed(store)


WRITER = """
import sys
from pathlib import Path
from dataflow.commit.epoch_effects import PersistEpoch
from persistence import shard_store
from persistence.files import database

database.LOG_BYTES_MAX = 64 << 10  # so that kills hit compactions too
store = shard_store.ShardStore(Path(sys.argv[1]))
while True:
    number = store.epoch + 1
    writes = {b"a%d" % (number * 7919 % 500): b"%d" % number * 200, b"last": b"%d" % number}
    store.persist_epoch(PersistEpoch(number, writes, [], {}, None, durable=True))
    print(number, store.allocate(b"counter", 1), flush=True)
"""


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    expected: dict[bytes, tuple[int, bytes]] = {}
    numbers: list[int] = []
    for lines in (1, 37, 700, 5, 300):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            acknowledged = [tuple(map(int, next(process.stdout).split())) for _ in range(lines)]
            process.kill()
        numbers += [number for _, number in acknowledged]
        store = ShardStore(path)
        assert store.epoch >= acknowledged[-1][0]
        for epoch_number in range(acknowledged[0][0], store.epoch + 1):
            text = b"%d" % epoch_number
            expected[b"a%d" % (epoch_number * 7919 % 500)] = (epoch_number, text * 200)
            expected[b"last"] = (epoch_number, text)
        fences = {fence(kind) for kind in KINDS}
        found = {
            key: (version, value)
            for chunk in store.view().scan(b"a", b"z")
            for key, version, value in chunk
            if key not in fences
        }
        assert found == expected
        store.abort()
    assert numbers == sorted(set(numbers))


def test_a_log_that_was_cut_off_is_damage_unless_a_power_cut_may_have_done_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ShardStore(tmp_path / "store", "os")
    for number in range(1, 30):
        store.persist_epoch(epoch(number, {b"a%d" % number: b"x" * 50, b"last": b"%d" % number}))
    store.abort()
    log = next(store.path.glob("*.log"))
    size = log.stat().st_size
    for cut in range(0, size, size // 13):
        copy = tmp_path / f"cut-{cut}"
        shutil.copytree(store.path, copy)
        with (copy / log.name).open("rb+") as file:
            file.truncate(cut)
        with pytest.raises(CorruptState, match="epoch"):
            ShardStore(copy, "os")
        with monkeypatch.context() as patch:
            patch.setattr(acknowledged, "this_boot", lambda: b"after the power ")
            after = ShardStore(copy, "os")
        assert after.get(b"last") == ((after.epoch, b"%d" % after.epoch) if after.epoch else None)
        found = [number for number in range(1, 30) if after.get(b"a%d" % number)]
        assert found == list(range(1, after.epoch + 1))
        after.abort()


def test_a_view_at_an_epoch_never_shows_the_one_being_written(store: ShardStore) -> None:
    """The writer is another thread; each epoch stores its own number."""
    store.persist_epoch(epoch(1, {b"k": b"1"}))
    last = 3000

    def write() -> None:
        for number in range(2, last + 1):
            store.persist_epoch(epoch(number, {b"k": str(number).encode()}))

    thread = threading.Thread(target=write)
    thread.start()
    while (now := store.epoch) < last:
        view = store.view_at(now)
        if view is not None:
            stored = view.get(b"k")
            assert stored is not None and stored[1] == str(now).encode()
    thread.join()
