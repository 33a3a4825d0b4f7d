"""The epoch that a worker's publications show, where several workers have parts of the same views.

Two words in a file of their own: the epoch that is being published, and the last one that is
published as a whole. What was read between looking at the second and at the first is as of
an epoch between them. So a reader that has seen epoch e on one shard knows of another one
whether it would go back there.
"""

from __future__ import annotations

import mmap
import os

from backend.shared_memory.segment import FOLDER, SegmentNames

SIZE_BYTES = 4096
SHOWN, BEGUN = range(2)


class EpochWords:
    """The writer's side."""

    def __init__(self, names: SegmentNames) -> None:
        self.file_name = names.new()
        descriptor = os.open(FOLDER / self.file_name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, SIZE_BYTES)
            self._words = memoryview(mmap.mmap(descriptor, SIZE_BYTES)).cast("Q")
        finally:
            os.close(descriptor)

    def begin(self, epoch: int) -> None:
        """From now on something may be of this epoch."""
        self._words[BEGUN] = epoch

    def end(self, epoch: int) -> None:
        """From now on everything is of this epoch."""
        self._words[SHOWN] = epoch

    def close(self) -> None:
        (FOLDER / self.file_name).unlink(missing_ok=True)


def open_epoch_words(name: str) -> memoryview | None:
    """The words of a worker on this machine: SHOWN and BEGUN."""
    try:
        descriptor = os.open(FOLDER / name, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_size != SIZE_BYTES:
            return None
        return memoryview(mmap.mmap(descriptor, SIZE_BYTES, prot=mmap.PROT_READ)).cast("Q")
    finally:
        os.close(descriptor)
