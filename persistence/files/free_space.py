"""Whether the disk has room for more. A shard refuses writes while it still has enough to go on with.

LevelDB cannot be opened without room for what its logs hold, and a failed write ends the worker. So new rows are
refused first, and deletions, which take room before they give it back, when just what is needed to open is left.
A shard that cannot be opened any more is read from a shadow (`persistence.files.shadow`).
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from dataflow.errors import Condition, MillraceError

LOG_BYTES_MAX = 32 << 20
"""LevelDB begins a new log when one has grown to this."""
OPENING_BYTES = 2 * LOG_BYTES_MAX
"""Two logs become files of their size when LevelDB is opened,"""
RESERVE_BYTES = OPENING_BYTES + LOG_BYTES_MAX
"""while a third is written."""
CHECK_EVERY_S = 0.1


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


def is_full(error: Exception) -> bool:
    """Whether LevelDB says that there was no room."""
    return any(reason in str(error) for reason in ("No space left", "Disk quota exceeded"))


def disk_full(place: Path | str, limit_bytes: int, allowed: str = "read") -> MillraceError:
    return MillraceError(Condition.DISK_FULL, place, limit_bytes >> 20, allowed)


class FreeSpace:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked_at = float("-inf")
        self._free_bytes = 0

    def require(self, limit_bytes: int) -> None:
        """Raises error 1021 if less is left."""
        if not self.has(limit_bytes):
            raise disk_full(self._path, limit_bytes, "read and deleted" if limit_bytes == RESERVE_BYTES else "read")

    def has(self, limit_bytes: int) -> bool:
        now = time.monotonic()
        if now - self._checked_at > CHECK_EVERY_S:
            self._checked_at = now
            self._free_bytes = free_bytes(self._path)
        return self._free_bytes >= limit_bytes
