"""Views in shared memory: against a dict, while other processes read, and after crashes."""

from __future__ import annotations

import fcntl
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.network.messages import Found
from backend.shared_memory import segment as segments
from backend.shared_memory.columns import ColumnReader
from backend.shared_memory.entry import EntryLayout
from backend.shared_memory.reader import NO_ROWS, SharedViewReader
from backend.shared_memory.segment import (
    SegmentNames,
    number_of,
    prefix_of,
    remove_orphans,
    remove_stale,
    tag_of,
)
from backend.shared_memory.shared_key import KeyNaming
from backend.shared_memory.writer import SharedViewWriter
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition
from dataflow.plan.node import Base
from dataflow.values.types import BIGINT, DOUBLE, INT, Row, Value, decimal, text
from tests.unit.backend.shared_view_processes import (
    DEPLOYMENT,
    TYPES,
    checked_row,
    decode,
    encode,
    left_behind,
    put,
    start_reader,
    stop_reader,
    writer,
)

STRESS_S = float(os.environ.get("MILLRACE_STRESS_S", "2"))


def opened(view: SharedViewWriter) -> SharedViewReader:
    reader = SharedViewReader.open(view.file_name)
    assert reader is not None
    return reader


# --- what readers see

names = st.one_of(st.integers(-5, 30), st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 40]))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), names, st.integers(0, 3), st.integers(0, 300)),
        st.tuples(st.just("remove"), names, st.just(0), st.just(0)),
        st.tuples(st.just("replace"), names, st.integers(0, 3), st.integers(0, 300)),
        st.tuples(st.just("publish"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("rebuild"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("compact"), st.just(0), st.just(0), st.just(0)),
    ),
    max_size=120,
)


def replace(view: SharedViewWriter, edited: dict[int, bytes], least: int, row_count: int, size: int) -> None:
    """Other rows for all keys that are not less than one."""
    wanted = [key for key in (*range(-5, 31), -(1 << 63), (1 << 63) - 1, 1 << 40) if key >= least]
    positions, lengths = view.find_many(np.array(wanted, np.int64))
    assert lengths.tolist() == [len(edited.get(key, b"")) for key in wanted]
    found = [number for number, key in enumerate(wanted) if key in edited]
    rows = [[(wanted[at], number, "y" * size, at) for number in range(row_count)] for at in found]
    assert not view.replace_many(positions[found], rows, list(map(encode, rows)))
    edited.update({wanted[at]: encode(some) for at, some in zip(found, rows)})


@settings(max_examples=150)
@given(steps, st.booleans(), st.booleans())
def test_readers_see_what_a_dict_has_at_each_publication(
    todo: list[tuple[str, int, int, int]], exact: bool, complete: bool
) -> None:
    """`published` is what readers must see, `edited` what the next publication shows."""
    published: dict[int, bytes] = {}
    edited: dict[int, bytes] = {}
    with writer(exact, complete) as view:
        reader = opened(view)

        def name(key: int) -> int | bytes:
            return key if exact else b"%d;" % key

        for step, key, row_count, size in todo:
            if step == "put":
                rows = [(key, number, "x" * size, 0) for number in range(row_count)]
                edited[key] = encode(rows)
                assert view.put(name(key), rows, edited[key])
            elif step == "remove":
                view.remove(name(key))
                edited.pop(key, None)
            elif step == "replace":
                if exact:
                    replace(view, edited, key, row_count, size)
            elif step == "publish":
                view.publish()
                published = dict(edited)
            else:
                view._begin()
                view._rebuild(compact=step == "compact")
            assert view.count == len(edited)
            missing = NO_ROWS if complete else None
            for each in {*published, *edited, 99}:
                assert (name(each) in view) == (each in edited)
                assert reader.get(name(each)) == published.get(each, missing)
                if exact:
                    assert reader.get_number(each) == published.get(each, missing)


def test_an_index_that_shrinks_leads_to_the_same_rows() -> None:
    for compact in (True, False):
        with writer() as view:
            for key in range(5000):
                put(view, key, 1)
            view.publish()
            reader = opened(view)
            for key in range(4900):
                view.remove(key)
            bits = view._segment.bits
            view._rebuild(compact)
            assert view._segment.bits < bits
            view.publish()
            assert reader.get_number(1) is None
            for key in range(4900, 5000):
                found = reader.get_number(key)
                assert found is not None and decode(found) == [checked_row(key, 1)]


def test_an_index_that_is_dense_because_memory_is_short_leads_to_the_same_rows() -> None:
    draw = random.Random(1)
    kept: set[int] = set()
    with writer() as view:
        reader = opened(view)
        for step in range(12_000):
            key = draw.randrange(1050)
            if key in kept:
                view.remove(key)
                kept.remove(key)
            else:
                put(view, key, 1)
                kept.add(key)
            if step % 1000 == 0:
                view.compact(pressed=True)
                view.publish()
                assert view.count == len(kept)
                assert view._used == np.count_nonzero(view._segment.index_array(view._epoch & 1)[::2])
                assert {each for each in range(1050) if reader.get_number(each) is not None} == kept
        assert view.count / (1 << view._segment.bits) > 0.45


def test_known_to_be_empty_is_not_absent() -> None:
    with writer() as view:
        view.put(1, [], encode([]))
        view.publish()
        reader = opened(view)
        assert reader.get(1) == NO_ROWS
        assert reader.get(2) is None
        columns = ColumnReader(reader, TYPES).read(np.array([1, 2]))
        assert columns is not None
        assert columns.known.tolist() == [True, False]
        assert columns.present.tolist() == [False, False]


def test_numbers_whose_tags_mean_empty_slots_are_asked_for_elsewhere() -> None:
    for tag in (0, 1):
        with writer(complete=True) as view:
            number = number_of(tag)
            assert tag_of(number) == tag
            reader = opened(view)
            assert not put(view, number, 1)
            view.publish()
            assert reader.get_number(number) is None
            assert reader.get(5) is None, "no longer complete"
            many = [number, *range(20)]
            assert reader.get_many(many) == [None] * 21
            columns = ColumnReader(reader, TYPES).read(np.array(many))
            assert columns is not None and not columns.known.any()


def test_a_key_without_a_place_does_not_make_the_index_anew_again_and_again() -> None:
    for pressed in (False, True):
        with writer() as view:
            view.compact(pressed)
            bits, key = view._segment.bits, 0
            while view.count < 0.31 * (1 << bits) or bits < 12:
                put(view, key, 1)
                bits, key = view._segment.bits, key + 1
            assert not put(view, number_of(0), 1) and not put(view, number_of(1), 1)
            homes = [number_of((1 << 64 - bits) * 77 + 2 + step) for step in range(400)]
            generation = view._generation
            assert 0 < sum(put(view, number, 1) for number in homes) < len(homes)
            assert view._generation <= generation + 1
            view.publish()
            assert opened(view).get_number(key - 1) is not None


def test_keys_in_each_others_way_are_all_found_at_once() -> None:
    """So many want the same slots that each search is long; some are removed, and some were never there."""
    generator = random.Random(3)
    with writer() as view:
        bits = 12
        view._begin()
        view._segment.close()
        view._segment = view._announced = view._new_segment(bits)
        homes = [*generator.sample(range((1 << bits) - 1), 40), (1 << bits) - 1]
        numbers = [number_of((home << 64 - bits) + 2 + step) for home in homes for step in range(40)]
        for number in numbers:
            assert put(view, number, 1)
        for number in numbers[::7]:
            view.remove(number)
        view.publish()
        reader = opened(view)
        there = [place % 7 != 0 for place in range(len(numbers))]
        columns = ColumnReader(reader, TYPES).read(np.array(numbers))
        assert columns is not None
        assert columns.known.tolist() == columns.present.tolist() == there
        assert columns.cells[0].tolist() == [number for number, here in zip(numbers, there) if here]
        assert [each is not None for each in reader.get_many(numbers) or ()] == there


def test_no_keys_are_no_rows() -> None:
    with writer() as view:
        columns = ColumnReader(opened(view), TYPES).read(np.array([], np.int64))
        assert columns is not None
        assert [len(each) for each in (columns.known, columns.present, *columns.cells)] == [0] * 6


def test_results_of_any_size_are_read_whole() -> None:
    with writer() as view:
        reader = opened(view)
        for count in (0, 1, 15, 16, 70_000):
            rows: list[Row] = [checked_row(number, number) for number in range(count)]
            view.put(count, rows, encode(rows))
            view.publish()
            found = reader.get_number(count)
            assert found is not None and decode(found) == rows


def test_keys_that_share_a_tag_are_told_apart() -> None:
    """CRC-32 gives these two the same; then only the key itself can tell."""
    one, other = b"plumless", b"buckeroo"
    assert zlib.crc32(one) == zlib.crc32(other)
    with writer(exact=False) as view:
        for number, key in enumerate((one, other)):
            rows = [checked_row(number, number)]
            view.put(key, rows, encode(rows))
        view.remove(one)
        view.publish()
        reader = opened(view)
        assert reader.get(one) is None
        found = reader.get(other)
        assert found is not None and decode(found) == [checked_row(1, 1)]


def test_columns_are_those_of_the_rows() -> None:
    types = (BIGINT, DOUBLE, text(100), decimal(10, 2), BIGINT)
    names = SegmentNames(DEPLOYMENT, 0)
    view = SharedViewWriter(names.new(), EntryLayout(types), True)
    rows: dict[int, Row] = {
        key: (key, key / 3, "ü" * (key % 300 if key != 450 else 5000), Decimal(key).scaleb(-2), None if key % 7 == 0 else -key)
        for key in range(500)
    }
    for key, row in rows.items():
        view.put(key, [row], encode([row]))
    view.publish()
    for wanted in (np.arange(600), np.array([*range(400), 599])):  # with a large text, and without
        columns = ColumnReader(opened(view), types).read(wanted)
        assert columns is not None
        assert columns.present.tolist() == [key < 500 for key in wanted]
        for key, row in enumerate(rows[key] for key in wanted.tolist() if key < 500):
            assert columns.nulls is not None
            null = int(columns.nulls[key])
            got = [each[key] for each in columns.cells]
            assert (int(got[0]), float(got[1]), got[2].as_py()) == row[:3]
            assert Decimal(got[3].as_py()) == row[3]
            assert (None if null >> 4 & 1 else int(got[4])) == row[4]
    view.close()
    names.close()


def test_keys_with_several_rows_have_no_columns() -> None:
    with writer() as view:
        rows = [checked_row(1, 1), checked_row(1, 2)]
        view.put(1, rows, encode(rows))
        view.publish()
        assert ColumnReader(opened(view), TYPES).read(np.array([1])) is None


def test_entries_are_those_of_keys_that_have_a_row_in_the_order_of_keys() -> None:
    for complete in (False, True):
        with writer(complete=complete) as view:
            for key in range(300):
                if key % 5:
                    put(view, key, key % 40)
                else:
                    view.put(key, [], encode([]))
            view.publish()
            columns = ColumnReader(opened(view), TYPES)
            keys = np.random.default_rng(2).permutation(300)
            found = columns.entries(keys, 1 << 20)
            assert found is not None and found.is_known
            assert found.words[:, 0].tolist() == [key for key in keys.tolist() if key % 5]
            data = found.words.tobytes()
            for key, version, place in zip(*found.words[:, :2].T.tolist(), found.places.tolist()):
                payload = encode([checked_row(key, version)])
                assert data[place : place + len(payload)] == payload
            missing = columns.entries(np.array([1, 300, 2]), 1 << 20)
            assert missing is not None and missing.is_known == complete
            assert columns.entries(keys, 1 << 10) is None
            view.put(7, [checked_row(7, 1)] * 2, encode([checked_row(7, 1)] * 2))
            view.publish()
            assert columns.entries(keys, 1 << 20) is None


def test_a_file_that_is_left_is_read_no_more() -> None:
    with writer() as view:
        put(view, 1, 1)
        view.publish()
        reader = opened(view)
        columns = ColumnReader(reader, TYPES)
        assert columns.read(np.array([1])) is not None
        reader.leave()
        assert reader.get_number(1) is None and reader.get_many([1]) == [None]
        assert columns.read(np.array([1])) is None and columns.entries(np.array([1]), 1 << 20) is None


def test_touched_keys_are_told_once() -> None:
    for exact in (True, False):
        with writer(exact) as view:
            keys: list[int | bytes] = [3, -4] if exact else [b"\x03", b"\x04"]
            for key in keys:
                view.put(key, [], encode([]))
            view.publish()
            reader = opened(view)
            assert list(view.take_touched()) == []
            reader.get(keys[1])
            assert list(view.take_touched()) == [keys[1]]
            assert list(view.take_touched()) == []


def test_keys_can_be_touched_while_it_is_asked_which_were() -> None:
    with writer() as view:
        for key in range(20_000):
            put(view, key, 1)
        view.publish()
        reader = start_reader(view, 20_000)
        touched: set[int | bytes] = set()
        for _ in range(2000):
            touched.update(view.take_touched())
        assert touched <= set(range(20_000))
        assert not stop_reader(reader)["wrong"]


# --- names of keys


@pytest.mark.parametrize("kind", [INT, DOUBLE, decimal(20, 4)])
def test_equal_numbers_have_one_name_and_others_have_another(kind: object) -> None:
    naming = KeyNaming([kind], [0])  # type: ignore[list-item]
    ones: list[Value] = [1, 1.0, Decimal("1.00")]
    assert len({naming.name([each]) for each in ones}) == 1
    name = naming.name([1])
    assert name is not None and naming.index_key(name) == 1
    halves = {naming.name([each]) for each in (0.5, Decimal("0.50"))}
    assert halves == {None} if kind is INT else len(halves) == 1 and naming.name([0.25]) not in halves


def test_texts_have_one_name_if_their_collation_takes_them_for_equal() -> None:
    naming = KeyNaming([INT, text(20), text(20, "utf8mb4_bin")], [2, 1, 0])
    assert naming.name(["a", "Äpfel", 1]) == naming.name(["a", "apfel", 1.0])
    assert naming.name(["a", "x", 1]) != naming.name(["A", "x", 1])
    name = naming.name(["a", "Äpfel", 1])
    assert name is not None and naming.name_of_index_key(naming.index_key(name)) == name


def test_numbers_beyond_64_bits_have_no_name() -> None:
    assert KeyNaming([BIGINT], [0]).name([1 << 63]) is None
    assert KeyNaming([BIGINT], [0]).name([None]) is None
    assert KeyNaming([BIGINT, BIGINT], [0, 1]).name([1 << 70, 1]) is None


def test_keys_of_several_integers_have_the_names_that_each_has_alone() -> None:
    naming = KeyNaming([BIGINT, INT, BIGINT], [2, 0])
    keys: list[tuple[Any, ...]] = [(1, 2), (-3, 1 << 63), ((1 << 64) - 1, 0)]
    odd: list[tuple[Any, ...]] = [(1, None), (Decimal("1.00"), 2), (1.0, 2), (True, 2)]
    names = naming.names(keys)
    assert names == [naming.name(key) for key in keys] == [naming.name_of_index_key(key[::-1]) for key in keys]
    assert naming.names(keys + odd) == [naming.name(key) for key in keys + odd]
    assert naming.name((Decimal("1.00"), 2)) == naming.name((True, 2)) == names[0]
    assert naming.index_key(names[0]) == (2, 1)
    assert naming.names([*keys, (1 << 64, 1)]) is None and naming.name((1 << 64, 1)) is None
    assert naming.names([*keys, (1.5, 1)]) is None
    assert KeyNaming([INT], [0]).name([float("inf")]) is None


# --- while others read


def test_no_read_is_torn_while_the_writer_changes_grows_compacts_and_evicts() -> None:
    key_count = 3_000
    generator = random.Random(7)
    with writer() as view:
        for key in range(100):
            put(view, key, 1)
        view.publish()
        readers = [start_reader(view, key_count) for _ in range(3)]
        deadline, version = time.monotonic() + STRESS_S, 1
        while time.monotonic() < deadline:
            version += 1
            for _ in range(generator.choice((1, 10, 200))):
                key = generator.randrange(min(key_count, 100 + version))
                if generator.random() < 0.1:
                    view.remove(key)
                else:
                    put(view, key, version)
            if version % 500 == 0:
                view._begin()
                view._rebuild(compact=version % 1000 == 0)
            view.publish()
        told = [stop_reader(reader) for reader in readers]
    for each in told:
        assert each["reads"] > 1000
        assert each["wrong"] == each["older"] == each["gone"] == 0
    assert sum(each["retries"] for each in told) > 0, "nothing was ever torn: the test is too tame"


def test_threads_share_a_reader_while_the_view_moves_from_file_to_file(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, failed, over = np.arange(40), list[BaseException](), threading.Event()
    some = keys.tolist()
    with writer() as view:
        for key in some:
            put(view, key, 1)
        view.publish()
        reader = opened(view)
        shared = [(reader, ColumnReader(reader, TYPES))]
        reads: list[Callable[[SharedViewReader, ColumnReader], object]] = [
            lambda reader, columns: reader.get_many(some[:3]),
            lambda reader, columns: reader.get_many(some),
            lambda reader, columns: reader.get_together(keys),
            lambda reader, columns: columns.read(keys),
        ]

        def read(what: Callable[[SharedViewReader, ColumnReader], object]) -> None:
            try:
                while not over.is_set():
                    what(*shared[0])
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=read, args=(each,)) for each in reads * 2]
        bits = itertools.cycle((7, 15))
        monkeypatch.setattr(view, "_bits", lambda count: next(bits))
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + STRESS_S
            while time.monotonic() < deadline and not failed:
                view._begin()
                view._rebuild()
                view.publish()
                reader = shared[0][0]
                if not reader.follow():  # somebody has missed a file that came and went
                    reader = opened(view)
                    shared[0] = (reader, ColumnReader(reader, TYPES))
        finally:
            over.set()
            for thread in threads:
                thread.join()
            sys.setswitchinterval(before)
    assert not failed


def test_a_thread_that_comes_late_does_not_lose_the_view() -> None:
    with writer() as view:
        put(view, 1, 1)
        view.publish()
        reader = opened(view)
        words = reader.segment.words
        for _ in range(3):
            view._begin()
            view._rebuild()
            view.publish()
            assert reader.get_number(1) is not None
        assert not reader.is_valid(words, 0)
        assert not reader.is_gone and reader.get_number(1) is not None


def test_a_reader_that_is_killed_leaves_nothing_behind() -> None:
    with writer() as view:
        for key in range(100):
            put(view, key, 1)
        view.publish()
        process = start_reader(view, 100)
        process.kill()
        process.communicate()
        put(view, 5, 2)
        view.publish()
        found = opened(view).get_number(5)
        assert found is not None and decode(found) == [checked_row(5, 2)]


def test_a_view_that_ends_is_gone_for_its_readers() -> None:
    with writer() as view:
        put(view, 1, 1)
        view.publish()
        reader = opened(view)
        process = start_reader(view, 100)
    assert reader.get_number(1) is None and reader.is_gone
    assert ColumnReader(reader, TYPES).read(np.array([1])) is None
    assert process.stdout is not None
    assert '"gone":1' in process.stdout.read()
    process.communicate()
    assert left_behind() == 0


CRASH = """
import os, signal, sys
from tests.unit.backend.shared_view_processes import *
with writer() as view:
    put(view, 1, 1)
    view.publish()
    put(view, 1, 2)       # half of an edit: never published
    print(view.file_name, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_readers_keep_a_dead_writers_last_publication_until_its_successor_starts() -> None:
    for _ in range(2):
        crashed = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True)
        assert crashed.returncode == -signal.SIGKILL
        reader = SharedViewReader.open(crashed.stdout.strip())
        assert reader is not None
        found = reader.get_number(1)
        assert found is not None and decode(found) == [checked_row(1, 1)]
        assert SegmentNames(DEPLOYMENT, 1).remove_stale() == 0, "another shard's files are not ours"
        assert SegmentNames(DEPLOYMENT, 0).remove_stale() == 2
        assert reader.get_number(1) is None and reader.is_gone
    assert left_behind() == 0


def test_the_heap_of_a_closed_file_takes_no_memory_even_if_somebody_keeps_it_open() -> None:
    with writer() as view:
        for key in range(20_000):
            put(view, key, 1)
        view.publish()
        reader, idle, *others = [opened(view) for _ in range(5)]
        columns = ColumnReader(reader, TYPES)
        held = os.open(segments.FOLDER / view.file_name, os.O_RDONLY)
        before = os.fstat(held).st_blocks * 512
        view._begin()
        view._rebuild(compact=True)
        view.publish()
        after = os.fstat(held).st_blocks * 512
        assert after == idle.segment.heap_start < before
        assert others[0].get_number(3) is not None and others[1].get(3) is not None and others[2].get_many(list(range(50))) is not None
        all_rows = columns.read(np.arange(20_000))
        assert all_rows is not None and all_rows.present.all() and all_rows.cells[1].tolist() == [1] * 20_000
        assert reader.get_number(7) is not None and idle.get_together(np.arange(100)) is not None
        assert os.fstat(held).st_blocks * 512 == after, "nobody has read where nothing is any more"
        os.close(held)


def test_a_file_that_another_process_has_closed_is_written_no_more() -> None:
    with writer(complete=True) as view:
        put(view, 1, 1)
        view.publish()
        reader = opened(view)
        remove_stale(prefix_of(DEPLOYMENT))
        with pytest.raises(OSError):
            put(view, 2, 1)
        assert reader.get_number(1) is None and reader.is_gone


def test_a_lock_that_is_swept_up_before_it_is_held_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    lock = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        if not swept:
            swept.append(True)
            remove_orphans()
        lock(descriptor, operation)

    monkeypatch.setattr(segments.fcntl, "flock", late)
    with writer() as view:
        assert swept and list(segments.FOLDER.glob(f"{prefix_of(DEPLOYMENT)}*-{segments.LOCK}"))
        remove_orphans()
        assert SharedViewReader.open(view.file_name) is not None
    assert left_behind() == 0


def test_files_without_an_owner_are_removed_and_others_are_not() -> None:
    with writer() as view:
        put(view, 1, 1)
        view.publish()
        reader = opened(view)
        crashed = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True)
        assert remove_orphans() >= 1
        assert SharedViewReader.open(crashed.stdout.strip()) is None
        assert reader.get_number(1) is not None
    assert left_behind() == 0


def test_a_view_that_is_gone_is_let_go_even_if_nobody_asks_for_it_again() -> None:
    shared = SharedViews()
    definitions = [ViewDefinition(Base(table, (BIGINT,), (0,)), (0,), ()) for table in range(3)]
    with writer() as kept, writer() as last:
        put(kept, 1, 1)
        with writer() as gone:
            for view, definition in ((kept, definitions[0]), (gone, definitions[1])):
                view.publish()
                shared.learn(definition, Found([], view.file_name))
        kept._begin()
        kept._rebuild()
        kept.publish()
        shared.learn(definitions[2], Found([], last.file_name))
        assert set(shared._readers) == {definitions[0].name, definitions[2].name}
        reader = shared.reader(definitions[0].name)
        assert isinstance(reader, SharedViewReader) and reader.segment.path.name == kept.file_name and reader.get_number(1) is not None


def test_what_is_no_view_of_ours_is_not_opened() -> None:
    path = segments.FOLDER / f"{prefix_of(DEPLOYMENT)}0-broken"
    path.write_bytes(b"not a view")
    assert SharedViewReader.open(path.name) is None
    path.write_bytes(bytes(10_000))
    assert SharedViewReader.open(path.name) is None
    assert remove_stale(prefix_of(DEPLOYMENT)) == 1
    assert not path.exists()
