"""A disk that is all but full: said in time, and only to who would fill it; what is stored can be read to the last byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import ANY, Puts, Stage
from dataflow.errors import Condition, MillraceError
from persistence.files import free_space, shadow
from persistence.files.free_space import OPENING_BYTES, RESERVE_BYTES
from persistence.shard_store import ShardStore

ROOT = Path(__file__).parents[4]
PUT = Stage((b"", 1), 0, (0,), [(b"key", ANY, None), (b"other", ANY, b"value")], [], [])
PUTS = Stage((b"", 1), 0, (0,), [], [], [], puts=(Puts([b"key"], [b"value"], ANY),))
DELETE = Stage((b"", 1), 0, (0,), [(b"key", ANY, None)], [], [])


@pytest.mark.parametrize(
    ("left", "allowed"), [(RESERVE_BYTES, (PUT, PUTS, DELETE)), (RESERVE_BYTES - 1, (DELETE,)), (OPENING_BYTES - 1, ())]
)
def test_a_full_disk_takes_deletions_and_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, allowed: tuple[Stage, ...]
) -> None:
    monkeypatch.setattr(free_space, "free_bytes", lambda path: left)
    store = ShardStore(tmp_path / "shard")
    assert store.read_only == (left < RESERVE_BYTES)
    assert store.can_delete == (left >= OPENING_BYTES)
    for stage in (PUT, PUTS, DELETE):
        if stage in allowed:
            store.require_room(stage)
        else:
            with pytest.raises(MillraceError, match=str(tmp_path)) as refused:
                store.require_room(stage)
            assert refused.value.condition is Condition.DISK_FULL
    store.close()


def test_a_shadow_leaves_the_store_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shard"
    store = ShardStore(folder)
    store.persist_epoch(PersistEpoch(1, {b"key": b"value"}, [], {}, None, True))
    store.abort()
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(shadow, "free_bytes", lambda path: 0)
        store = ShardStore(folder)
        assert store.read_only and store.get(b"key") == (1, b"value")
        with pytest.raises(MillraceError):
            store.require_room(DELETE)
        with pytest.raises(MillraceError):
            store.allocate(b"counter", 1)
        store.close()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert not shadow.shadow_of(folder).exists()
    store = ShardStore(folder)
    assert store.shadow is None and store.get(b"key") == (1, b"value")
    store.close()


PROGRAM = """
import os, subprocess, sys
from pathlib import Path
import plyvel
from persistence.files import free_space

free_space.LOG_BYTES_MAX, free_space.OPENING_BYTES, free_space.RESERVE_BYTES = 1 << 18, 1 << 19, 3 << 18
free_space.CHECK_EVERY_S = 0
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import ANY, Stage
from dataflow.errors import Condition, MillraceError
from persistence.shard_store import ShardStore

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=14m", "none", str(disk)], check=True)
(disk / "old").write_bytes(bytes(8 << 20))
store = ShardStore(disk / "shard")
rows = {}


def commit(writes):
    writes_ = [(key, ANY, value) for key, value in writes.items()]
    store.require_room(Stage((b"", 1), 0, (0,), writes_, [], []))
    store.persist_epoch(PersistEpoch(store.epoch + 1, writes, [], {}, None, True))
    for key, value in writes.items():
        rows.pop(key, None)
        if value is not None:
            rows[key] = store.epoch, value


def until_refused(step):
    # a compaction that needs more room than is left makes a write fail, too
    for number in range(100_000):
        try:
            commit(step(number))
        except MillraceError as error:
            assert error.condition is Condition.DISK_FULL
            return number
        except plyvel.IOError as error:
            assert free_space.is_full(error)
            return number


def check():
    found = {key: (version, value) for chunk in store.view().scan(b"k", b"l") for key, version, value in chunk}
    assert found == rows, (len(found), len(rows))


puts = until_refused(lambda number: {b"k%05d" % number: os.urandom(2_000)})
assert puts > 300
check()
deletes = until_refused(lambda number: {b"k%05d" % number: None} if number < puts // 2 else {b"k1": b""})
check()
# Somebody else takes what is left, and a write that was begun before fails.
with (disk / "others").open("wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError:
        pass
try:
    for _ in range(1000):
        store.persist_epoch(PersistEpoch(store.epoch + 1, {b"k99999": os.urandom(2_000)}, [], {}, None, True))
        rows[b"k99999"] = store.get(b"k99999")
    raise SystemExit("nothing failed")
except (plyvel.IOError, MillraceError):
    pass
store.abort()
store = ShardStore(disk / "shard")
assert store.shadow is not None and store.read_only
check()
for step in ({b"k00000": None}, {b"k1": b""}):
    assert until_refused(lambda number: step) == 0
store.close()
for _ in range(2):  # what a compaction had left half-done may be gone by now
    store = ShardStore(disk / "shard")
    check()
    store.abort()
(disk / "others").unlink()
(disk / "old").unlink()
store = ShardStore(disk / "shard")
assert store.shadow is None
check()
assert not store.read_only
for number in range(20):
    commit({b"k%05d" % (puts - 1 - number): None, b"k%05d" % (puts + number): b"new"})
check()
store.close()
print("done", puts, deletes)
"""


def test_a_disk_that_is_really_full_is_survived(tmp_path: Path) -> None:
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", PROGRAM, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0 and ran.stdout.startswith("done"), ran.stdout + ran.stderr
