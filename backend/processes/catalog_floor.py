"""The newest version of the catalog that is known to have been in ZooKeeper, in a file of the data directory.

Whoever writes to ZooKeeper could put back an earlier catalog, which carries the cluster's seal as well: with an account that
was dropped, or none at all. A start with less than this version is refused. The file is not waited for
to be on disk: after a power cut it may be a little behind, never ahead.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE = "catalog-version"
_DIGITS = 20


def known_version(data: Path) -> int | None:
    """None if the data directory is from before there was such a file."""
    try:
        return int((data / FILE).read_text() or "0")
    except FileNotFoundError:
        return None


def note_version(data: Path, version: int) -> None:
    """Written in place and in one piece, so it is one number or the other."""
    if version < (known_version(data) or 0):
        return
    descriptor = os.open(data / FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, f"{version:0{_DIGITS}}".encode(), 0)
    finally:
        os.close(descriptor)
