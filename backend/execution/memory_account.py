"""How much memory a statement's rows take, and its end when that is too much.

Sizes are estimated from samples: what counts is whether a statement holds a megabyte or a gigabyte. What rows
share, such as the values of the two rows that a joined one is made of, counts once, where it was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof
from typing import Any

from dataflow.errors import Condition, MillraceError

SAMPLE_ROWS = 8
LIMIT_BYTES = 512 << 20
VARIABLE = "statement_memory"


class MemoryAccount:
    """What one statement holds."""

    __slots__ = ("held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0

    def take(self, size_bytes: int) -> None:
        self.held_bytes += size_bytes
        if self.held_bytes > self.limit_bytes:
            raise MillraceError(Condition.CAPACITY_EXCEEDED, self.limit_bytes, VARIABLE, "The statement was ended.")

    def give(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes


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


def _size(value: Any, seen: set[int]) -> int:
    """What has been seen in another place counts once."""
    if value is None or id(value) in seen:
        return 8
    seen.add(id(value))
    if type(value) is tuple:
        return getsizeof(value) + sum([_size(each, seen) for each in value])
    return 8 + getsizeof(value)
