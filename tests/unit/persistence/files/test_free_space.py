"""A disk that is all but full: said in time, and only to who would fill it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow.epoch_messages import ANY, Puts, Stage
from dataflow.errors import Condition, MillraceError
from persistence import shard_store
from persistence.files.free_space import FreeSpace
from persistence.shard_store import ShardStore


def test_less_than_the_reserve_is_error_1021(tmp_path: Path) -> None:
    FreeSpace(tmp_path, 0).require()
    with pytest.raises(MillraceError, match=str(tmp_path)) as refused:
        FreeSpace(tmp_path, 1 << 62).require()
    assert refused.value.condition is Condition.DISK_FULL


def test_a_full_disk_takes_deletions_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_store, "RESERVE_BYTES", 1 << 62)
    store = ShardStore(tmp_path / "shard")
    store.require_room(Stage((b"", 1), 0, (0,), [(b"key", ANY, None)], [], []))
    with pytest.raises(MillraceError):
        store.require_room(Stage((b"", 1), 0, (0,), [(b"key", ANY, None), (b"other", ANY, b"value")], [], []))
    with pytest.raises(MillraceError):
        store.require_room(Stage((b"", 1), 0, (0,), [], [], [], puts=(Puts([b"key"], [b"value"], ANY),)))
    store.close()
