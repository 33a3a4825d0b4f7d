"""Whether the disk has room for more. A shard refuses new rows while it still has enough to go on with.

LevelDB cannot be opened without room for what its logs hold, and a failed write ends the worker.
So the reserve is what the logs and the files made of them take at most.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from dataflow.errors import Condition, MillraceError

CHECK_EVERY_S = 0.1


class FreeSpace:
    def __init__(self, path: Path, reserve_bytes: int) -> None:
        self._path = path
        self._reserve_bytes = reserve_bytes
        self._checked_at = float("-inf")
        self._is_short = False

    def require(self) -> None:
        """Raises error 1021 if less than the reserve is left."""
        now = time.monotonic()
        if now - self._checked_at > CHECK_EVERY_S:
            self._checked_at = now
            self._is_short = shutil.disk_usage(self._path).free < self._reserve_bytes
        if self._is_short:
            raise MillraceError(Condition.DISK_FULL, str(self._path), self._reserve_bytes >> 20)
