"""Finding many keys in an index at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.shared_memory.segment import ADDEND, EMPTY, MULTIPLIER

Array = np.ndarray[Any, Any]

_MULTIPLIER, _ADDEND = np.uint64(MULTIPLIER), np.uint64(ADDEND)


def tags_of(numbers: Array) -> Array:
    """The tags of int64 numbers."""
    tags: Array = numbers.view(np.uint64) * _MULTIPLIER
    tags += _ADDEND
    return tags


def find(index: Array, tags: Array, shift: int) -> tuple[Array, Array]:
    """The position of each tag, and which of them are missing: theirs is the last slot, always empty."""
    positions: Array = (tags >> np.uint64(shift - 1)).view(np.int64)
    positions &= -2
    at = index[positions]
    missing = at != tags
    if missing.any():
        # Where another key was found, go on until each has its own or an empty slot.
        going = np.flatnonzero(missing & (at != EMPTY))
        while len(going):
            positions[going] += 2
            at = index[positions[going]]
            hit = at == tags[going]
            missing[going[hit]] = False
            going = going[~hit & (at != EMPTY)]
        positions[missing] = len(index) - 2
    return positions, missing
