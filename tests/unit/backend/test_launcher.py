"""Spark and its Python workers meet in a folder whose name Spark accepts, wherever the data directory is."""

from __future__ import annotations

from pathlib import Path

from backend.launcher import SOCKET_FOLDER_BYTES_MAX, socket_folder


def test_a_long_data_directory_gets_a_folder_with_a_short_name() -> None:
    short = Path("/" + "d" * (SOCKET_FOLDER_BYTES_MAX - 1))
    assert socket_folder(short) == str(short)
    other = Path(socket_folder(Path(f"{short}d")))
    assert len(bytes(other)) <= SOCKET_FOLDER_BYTES_MAX and other.stat().st_mode & 0o777 == 0o700
