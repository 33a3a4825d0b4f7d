"""The file of one view: where everything is, how it comes, and how it goes.

    header    64-bit words: epoch, writing, successor, …
    index 0   (tag, location) for each slot, open addressing
    index 1
    touched   a byte for each half slot, so that an entry's position is also that of its byte
    heap      blocks of the entries, to the end of the file

A tag stands for a key, 0 for an empty slot, 1 for one whose key was removed. A location is
the place of an entry's encoded rows in the file, in units of 8 bytes, and their length.

The file is as long as its heap may ever get, but only what is reserved takes memory:
`reserve` fails where there is none left, instead of a signal on the first access. A file that
is closed says so in its header, to all who have it mapped: whoever reads there looks at
`successor`, the number of the file that replaces it, or finds that the view is gone.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import platform
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path("/dev/shm")

NAME = "millrace"
LOCK = "lock"

HEADER_BYTES = 4096
MAGIC = 0x6D696C6C72616302
EPOCH, WRITING, SUCCESSOR, COMPLETE, FORMAT, BITS, WIDTH, EXACT, GROUPED = range(9)
CLOSED = 1 << 62
"""`WRITING` of a closed file: later than any epoch."""

PROBE_MAX = 256
"""No key is further than this from its first slot, so no search is longer."""
BITS_MIN = 6
HEAP_BYTES_MAX = 1 << 34
SLACK_BYTES = 4096
"""What is reserved behind the heap, for readers that copy more than an entry."""
LENGTH_BITS = 28
LENGTH_MASK = (1 << LENGTH_BITS) - 1

EMPTY, REMOVED = 0, 1
MULTIPLIER = 0x9E3779B97F4A7C15
INVERSE = pow(MULTIPLIER, -1, 1 << 64)
ADDEND = 0xD1B54A32D192ED03
WORD_MASK = (1 << 64) - 1


def tag_of(number: int) -> int:
    """A number's tag. No two numbers of 64 bits have the same; its first bits choose the slot."""
    return (number * MULTIPLIER + ADDEND) & WORD_MASK


def number_of(tag: int) -> int:
    """The signed number that has this tag."""
    number = ((tag - ADDEND) * INVERSE) & WORD_MASK
    return number - (1 << 64) if number >> 63 else number


def is_possible() -> bool:
    """Whether this machine has what sharing needs: a folder in memory, and stores in order."""
    return FOLDER.is_dir() and platform.machine() in ("x86_64", "AMD64")


class Segment:
    """A mapped file. `pairs` are the two indexes; numpy's views of the same are made when asked for."""

    def __init__(self, path: Path, memory: mmap.mmap, bits: int) -> None:
        self.path = path
        self.memory = memory
        self.bits = bits
        self.shift = 64 - bits
        self.slots = slots = (1 << bits) + PROBE_MAX
        view = memoryview(memory)
        self.words = view[:HEADER_BYTES].cast("Q")
        first, second, touched, self.heap_start = _places(slots)
        self.pairs = (view[first:second].cast("Q"), view[second:touched].cast("Q"))
        self.touched = view[touched : touched + 2 * slots]

    @staticmethod
    def create(path: Path, bits: int, width: int, exact: bool) -> Segment:
        """A new, empty file, open for its writer alone until somebody is told its name."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            heap_start = _places((1 << bits) + PROBE_MAX)[-1]
            os.ftruncate(descriptor, heap_start + HEAP_BYTES_MAX + SLACK_BYTES)
            os.posix_fallocate(descriptor, 0, heap_start)
            segment = Segment(path, mmap.mmap(descriptor, heap_start + HEAP_BYTES_MAX + SLACK_BYTES), bits)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        words = segment.words
        words[FORMAT], words[BITS], words[WIDTH], words[EXACT] = MAGIC, bits, width, exact
        return segment

    @staticmethod
    def open(path: Path) -> Segment | None:
        """Map a file that another process made; None if it is gone, or none of ours."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            size = os.fstat(descriptor).st_size
            if size < HEADER_BYTES:
                return None
            memory = mmap.mmap(descriptor, size)
        except OSError:  # the process may not have so much address space
            return None
        finally:
            os.close(descriptor)
        header = memoryview(memory)[:HEADER_BYTES].cast("Q")
        if header[FORMAT] != MAGIC or not BITS_MIN <= header[BITS] <= 40:
            return None
        if size != _places((1 << header[BITS]) + PROBE_MAX)[-1] + HEAP_BYTES_MAX + SLACK_BYTES:
            return None
        return Segment(path, memory, header[BITS])

    def reserve(self, start: int, stop: int) -> None:
        """Make sure that this part of the heap can be written; OSError if memory has run out."""
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            os.posix_fallocate(descriptor, self.heap_start + start, stop - start + SLACK_BYTES)
        finally:
            os.close(descriptor)

    def close(self, successor: int = 0) -> None:
        """Tell all who read here that it is over, and remove the file.

        Those who have it mapped may keep it for long, so the heap goes now. Who reads on finds the
        indexes empty, and then the file closed: nobody comes to a page that is gone, which would
        need memory anew, and end the process if there is none.
        """
        self.words[SUCCESSOR] = successor
        self.words[WRITING] = CLOSED
        self.path.unlink(missing_ok=True)
        for which in (0, 1):
            self.index_array(which)[:] = EMPTY
        with suppress(OSError):  # not everything that looks like memory can do this
            self.memory.madvise(mmap.MADV_REMOVE, self.heap_start)

    def index_array(self, which: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """An index as numbers: tags at even places, locations at odd ones."""
        return np.frombuffer(self.pairs[which], np.uint64)

    def slots_array(self, which: int) -> np.ndarray[Any, np.dtype[np.complex128]]:
        """An index as slots, tag and location together: see `probing`."""
        return np.frombuffer(self.pairs[which], np.complex128)

    def touched_array(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return np.frombuffer(self.touched, np.uint8)

    def array(self, kind: type[np.generic]) -> np.ndarray[Any, Any]:
        """The whole file as numbers of one kind."""
        return np.frombuffer(self.memory, kind)


def _places(slots: int) -> tuple[int, int, int, int]:
    """Where index 0, index 1, the touched bytes and the heap begin."""
    first = HEADER_BYTES
    second = first + 16 * slots
    touched = second + 16 * slots
    heap = touched + 2 * slots
    return first, second, touched, -(-heap // 4096) * 4096


class SegmentNames:
    """The names of one worker's files: those of a predecessor are found by their prefix.

    While the process lives it holds the lock of one more file, so that anybody can tell
    whether what is there has still an owner.
    """

    def __init__(self, deployment: str, shard: int) -> None:
        self.prefix = f"{prefix_of(deployment)}{shard}-"
        self._start = f"{self.prefix}{os.getpid()}-{os.urandom(4).hex()}-"
        self._count = 0
        self._lock: int | None = None

    def new(self) -> str:
        """A name that no file ever had; what follows is the number of its generation."""
        if self._lock is None:
            self._lock = _locked(FOLDER / f"{self._start}{LOCK}")
        self._count += 1
        return f"{self._start}{self._count}"

    def remove_stale(self) -> int:
        """Remove what predecessors have left; to be called when there can be none alive."""
        return remove_stale(self.prefix)

    def close(self) -> None:
        """All files are closed."""
        if self._lock is not None:
            (FOLDER / f"{self._start}{LOCK}").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def _locked(path: Path) -> int:
    """A new file, and its lock. Whoever sweeps may come in between the two: then once more."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def prefix_of(deployment: str) -> str:
    """How the names of all files of a deployment begin."""
    return f"{NAME}-{blake2b(deployment.encode(), digest_size=6).hexdigest()}-"


def remove_stale(prefix: str) -> int:
    """Close and remove files that a dead process left behind; returns how many.

    Whoever still reads there finds them closed: after a restart the old state must not be
    taken for the current one.
    """
    if not is_possible():
        return 0
    stale = [path for path in FOLDER.iterdir() if path.name.startswith(prefix)]
    for path in stale:
        segment = Segment.open(path)
        if segment is not None:
            segment.close()
        path.unlink(missing_ok=True)
    return len(stale)


def remove_orphans() -> int:
    """Sweep up after every worker of any deployment on this machine that is dead; returns how many."""
    count = 0
    for path in FOLDER.glob(f"{NAME}-*-{LOCK}") if is_possible() else ():
        try:
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone by now, or another user's
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_stale(path.name.removesuffix(LOCK))
            count += 1
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
    return count


def generation_path(name: str, generation: int) -> Path:
    return FOLDER / f"{name}.{generation}"
