"""Spark and its Python workers meet in a folder whose name Spark accepts, wherever the data directory is."""

from __future__ import annotations

from pathlib import Path

from backend.processes.launcher import SOCKET_FOLDER_BYTES_MAX, remove_scratch, socket_folder


def test_a_long_data_directory_gets_a_folder_with_a_short_name(tmp_path: Path) -> None:
    short = Path("/" + "d" * (SOCKET_FOLDER_BYTES_MAX - 1))
    assert socket_folder(short) == str(short)
    long = tmp_path / ("d" * SOCKET_FOLDER_BYTES_MAX)
    long.mkdir()
    other = Path(socket_folder(long))
    assert len(bytes(other)) <= SOCKET_FOLDER_BYTES_MAX and other.stat().st_mode & 0o777 == 0o700


def test_what_a_killed_launcher_has_left_is_removed(tmp_path: Path) -> None:
    scratch = tmp_path / ("d" * SOCKET_FOLDER_BYTES_MAX)
    scratch.mkdir()
    other = Path(socket_folder(scratch))
    (other / "socket").touch()
    remove_scratch(scratch)
    assert not other.exists() and not scratch.exists()
    remove_scratch(scratch)
