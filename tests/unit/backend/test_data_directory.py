"""Others are left nothing of a data directory, or it is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from backend.processes.data_directory import NotPrivate, make_private


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}


def open_folder(folder: Path) -> None:
    """As it would be under the usual mask."""
    (folder / "shards" / "0").mkdir(parents=True)
    (folder / "shards" / "0" / "000005.log").write_text("rows")
    (folder / "secret").write_text("00")
    (folder / "java").write_text("#!")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.name == "java" else 0o644)


def test_what_others_could_read_they_cannot_any_more(tmp_path: Path) -> None:
    data = tmp_path / "data"
    open_folder(data)
    make_private(data)
    assert modes(data) == {
        ".": 0o700, "shards": 0o700, "shards/0": 0o700, "shards/0/000005.log": 0o600, "secret": 0o600, "java": 0o700
    }  # fmt: skip


def test_what_a_link_leads_to_is_left_alone(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    open_folder(data)
    elsewhere.write_text("")
    elsewhere.chmod(0o644)
    (data / "link").symlink_to(elsewhere)
    (data / "broken").symlink_to(tmp_path / "nothing")
    make_private(data)
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644


def test_what_belongs_to_somebody_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_folder(tmp_path / "data")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(NotPrivate, match=r"data belongs to \w+, .* give it to user 54321"):
        make_private(tmp_path / "data")
