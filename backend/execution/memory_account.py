"""The memory of a statement's rows, estimated; beyond its limit the statement ends with error 3170.

Sizes are estimated from samples: what counts is whether a statement holds a megabyte or a gigabyte. What rows
share, such as the values of the two rows that a joined one is made of, counts once, where it was made.

Long values are noted when they are made (`note_made`): they may be kept uncounted for a while, as sort keys are,
or be freed at once. When their sum passes the limit, the size of the process tells which of the two happened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any

from dataflow.errors import Condition, MillraceError

SAMPLE_ROWS = 8
LIMIT_BYTES = 512 << 20
VARIABLE = "statement_memory"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class MemoryAccount:
    """What one statement holds. `_made_bytes` of long values were made that were neither counted nor looked at."""

    __slots__ = ("_made_bytes", "_resident_before", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._made_bytes = 0
        self._resident_before = 0

    def take(self, size_bytes: int) -> None:
        if 0 < self._made_bytes <= size_bytes:  # that is what was made
            self._made_bytes = self._resident_before = 0
        self.held_bytes += size_bytes
        if self.held_bytes > self.limit_bytes:
            raise self._exceeded()

    def give(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes

    def note_made(self, size_bytes: int) -> None:
        """A long value was made that nobody has counted."""
        if not self._resident_before:
            self._resident_before = _resident_bytes() - size_bytes
        self._made_bytes += size_bytes
        if self.held_bytes + self._made_bytes > self.limit_bytes:
            if self.held_bytes + _resident_bytes() - self._resident_before > self.limit_bytes:
                raise self._exceeded()
            self._made_bytes = 0

    def _exceeded(self) -> MillraceError:
        return MillraceError(Condition.CAPACITY_EXCEEDED, self.limit_bytes, VARIABLE, "The statement was ended.")


def _resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * _PAGE_BYTES


def size_of(rows: Sequence[Any]) -> int:
    """About how many bytes these rows take, with their values."""
    if not rows:
        return 0
    sample = rows[:: len(rows) // SAMPLE_ROWS + 1]
    seen: set[int] = set()
    return sum([_size(each, seen) for each in sample]) * len(rows) // len(sample)


def shallow_size_of(rows: Sequence[Any]) -> int:
    """The same without their values, which somebody else holds."""
    return len(rows) * (getsizeof(rows[0]) + 8) if rows else 0


def size_beside(row: Sequence[Any], others: Iterable[Any]) -> int:
    """About how many bytes a row takes besides those of its values that are among the `others`."""
    seen = {id(each) for each in others}
    return 8 + getsizeof(row) + sum([_size(each, seen) for each in row])


def _size(value: Any, seen: set[int]) -> int:
    """What has been seen in another place counts once."""
    if value is None or id(value) in seen:
        return 8
    seen.add(id(value))
    if type(value) is tuple:
        return getsizeof(value) + sum([_size(each, seen) for each in value])
    return 8 + getsizeof(value)
