"""Flipped bytes: what was acknowledged is there and right, or the damage is said; never fewer or other rows."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.errors import Condition, CorruptState
from persistence.counters import EPOCH_COUNTER
from persistence.files import database
from persistence.files.repair import repair
from persistence.shard_store import ShardStore

Rows = dict[bytes, tuple[int, bytes]]
LAST = 260
HISTORY: dict[int, Rows] = {}
"""The rows as of each epoch of the store that the tests damage."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """A store that was killed, with several table files, deletions, a log of small and large writes; and its rows."""
    folder = tmp_path_factory.mktemp("whole") / "shard"
    size, database.LOG_BYTES_MAX = database.LOG_BYTES_MAX, 64 << 10
    choice = random.Random(5)
    rows: Rows = {}
    try:
        store = ShardStore(folder)
        for number in range(1, LAST + 1):
            keys = [b"k%04d" % choice.randrange(2_000) for _ in range(choice.choice((1, 3, 10, 120) if number < 230 else (1, 3)))]
            if number == 230:  # for the log: more than a block in one write
                keys = [b"k%04d" % key for key in range(0, 2_000, 4)]
            writes = {key: None if choice.random() < 0.1 else b"%d:" % number + b"." * choice.randrange(120) for key in keys}
            store.persist_epoch(PersistEpoch(number, writes, [(b"client", number)], {}, None, durable=True))
            for key, value in writes.items():
                rows.pop(key, None)
                if value is not None:
                    rows[key] = number, value
            HISTORY[number] = dict(rows)
            if number % 40 == 0:
                store.allocate(b"counter", 1500)
        store.abort()
    finally:
        database.LOG_BYTES_MAX = size
    return folder, rows


def read_all(folder: Path) -> tuple[int, Rows]:
    store = ShardStore(folder)
    try:
        rows = {key: (version, value) for chunk in store.view().scan(b"k", b"l") for key, version, value in chunk}
        for key in random.Random(3).sample(sorted(rows), 50):
            assert store.get(key) == rows[key]
        return store.epoch, rows
    finally:
        store.abort()


def kinds(folder: Path) -> dict[str, list[Path]]:
    found = {kind: sorted(folder.glob(kind)) for kind in ("*.log", "*.ldb", "MANIFEST-*", "CURRENT", "ACKNOWLEDGED")}
    assert all(found.values()) and len(found["*.ldb"]) > 2
    return found


def test_an_undamaged_copy_is_whole(whole: tuple[Path, Rows], tmp_path: Path) -> None:
    folder, rows = whole
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert read_all(copy) == (LAST, rows)
    assert read_all(copy) == (LAST, rows)


@pytest.mark.parametrize("kind", ["*.log", "*.ldb", "MANIFEST-*", "CURRENT", "ACKNOWLEDGED"])
def test_a_flipped_byte_is_said_or_does_no_harm(whole: tuple[Path, Rows], tmp_path: Path, kind: str) -> None:
    folder, rows = whole
    said = 0
    choice = random.Random(kind)
    for run in range(24):
        copy = shutil.copytree(folder, tmp_path / str(run))
        path = choice.choice(kinds(copy)[kind])
        data = bytearray(path.read_bytes())
        # Half of them where the newest is, which LevelDB might take for what a crash left half-written.
        place = choice.randrange(len(data)) if run % 2 else len(data) - 1 - choice.randrange(min(len(data), 4_000))
        data[place] ^= 1 << choice.randrange(8)
        path.write_bytes(data)
        try:
            assert read_all(copy) == (LAST, rows), f"{path.name}, byte {place}"
        except CorruptState as error:
            assert error.condition is Condition.DAMAGED and str(copy) in str(error)
            said += 1
        shutil.rmtree(copy)
    assert said >= 4


@pytest.mark.parametrize("kind", ["*.log", "*.ldb"])
def test_zeros_and_cut_off_ends_are_said(whole: tuple[Path, Rows], tmp_path: Path, kind: str) -> None:
    folder, rows = whole
    choice = random.Random(kind)
    for run in range(15):
        copy = shutil.copytree(folder, tmp_path / str(run))
        path = choice.choice(kinds(copy)[kind])
        data = bytearray(path.read_bytes())
        start = choice.randrange(len(data))
        end = min(start + choice.choice((16, 512, 4096)), len(data))
        if run % 3 == 0:
            del data[start:]
        else:
            data[start:end] = bytes(end - start)
        path.write_bytes(data)
        with pytest.raises(CorruptState, match=str(copy)):
            assert read_all(copy) == (LAST, rows), f"{path.name}, bytes {start} to {end}"
            raise CorruptState(f"{copy}: nothing needed was hit")
        shutil.rmtree(copy)


@pytest.mark.parametrize("kind", ["*.log", "*.ldb", "MANIFEST-*", "CURRENT", "ACKNOWLEDGED"])
def test_a_missing_file_is_named_each_time_and_nothing_is_removed(whole: tuple[Path, Rows], tmp_path: Path, kind: str) -> None:
    folder, _ = whole
    copy = shutil.copytree(folder, tmp_path / "copy")
    missing = kinds(copy)[kind][-1]
    kept = missing.rename(tmp_path / missing.name)
    for _ in range(2):
        with pytest.raises(CorruptState, match=missing.name):
            read_all(copy)
    kept.rename(missing)
    if kind != "ACKNOWLEDGED":  # for which the database has to be opened
        assert {path.name for path in folder.glob("*.ldb")} <= {path.name for path in copy.glob("*.ldb")}


def test_a_write_that_a_crash_left_half_written_is_passed_over(whole: tuple[Path, Rows], tmp_path: Path) -> None:
    folder, rows = whole
    for tail in (b"\x01", b"\x11\x22\x33\x44\x00\x30\x01half", bytes(300), bytes(40_000)):
        copy = shutil.copytree(folder, tmp_path / str(len(tail)))
        with sorted(copy.glob("*.log"))[-1].open("ab") as file:
            file.write(tail)
        assert read_all(copy) == (LAST, rows)


def test_the_epochs_that_are_missing_are_named(whole: tuple[Path, Rows], tmp_path: Path) -> None:
    folder, _ = whole
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = sorted(copy.glob("*.log"))[-1]
    data = path.read_bytes()
    place = data.index(b"259:")
    path.write_bytes(data[:place] + b"X" + data[place + 1 :])
    with pytest.raises(CorruptState, match=r"\.log: a wrong checksum at byte .* missing after epoch 258 and before epoch 260"):
        read_all(copy)


@pytest.mark.parametrize("kind", ["*.log", "MANIFEST-*", "CURRENT", "ACKNOWLEDGED"])
def test_a_repaired_store_is_as_of_one_epoch_and_says_what_is_lost(
    whole: tuple[Path, Rows], tmp_path: Path, kind: str
) -> None:
    folder, _ = whole
    choice = random.Random(kind)
    for run in range(6):
        copy = shutil.copytree(folder, tmp_path / str(run))
        path = kinds(copy)[kind][-1]
        data = bytearray(path.read_bytes())
        data[choice.randrange(len(data) // 2, len(data))] ^= 1 << choice.randrange(8)
        path.write_bytes(data)
        lines = list(repair(copy))
        epoch, rows = read_all(copy)
        assert rows == HISTORY[epoch]
        assert f"as of epoch {epoch}" in lines[-1]
        assert epoch == LAST or f"up to epoch {LAST} are lost" in lines[-1] or kind == "ACKNOWLEDGED"
        assert not list(repair(copy))
        store = ShardStore(copy)
        assert store.allocate(EPOCH_COUNTER, 1) > LAST
        store.abort()


def test_a_repaired_store_keeps_the_whole_blocks_of_a_damaged_table(whole: tuple[Path, Rows], tmp_path: Path) -> None:
    folder, rows = whole
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = max(copy.glob("*.ldb"), key=lambda each: each.stat().st_size)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert any(path.name in line and "CHECK TABLE" in line for line in repair(copy))
    epoch, found = read_all(copy)
    assert epoch == LAST
    assert len(rows) - 200 < len(found.keys() & rows.keys()) < len(rows)
    assert all(any(value == state.get(key) for state in HISTORY.values()) for key, value in found.items())


def test_a_whole_store_is_not_repaired(whole: tuple[Path, Rows], tmp_path: Path) -> None:
    folder, rows = whole
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert not list(repair(copy))
    assert read_all(copy) == (LAST, rows)
