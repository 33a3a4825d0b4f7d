"""Finding many keys in an index at once.

A slot is 16 bytes, its tag and its location, and numpy copies both in one go if it takes them
for one number. So an index is an array of complex numbers here; nothing is calculated with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from backend.shared_memory.segment import ADDEND, EMPTY, MULTIPLIER

Array = np.ndarray[Any, Any]

# Arrays without dimensions are the quickest constants.
_MULTIPLIER, _ADDEND = np.array(MULTIPLIER, np.uint64), np.array(ADDEND, np.uint64)
_AHEAD = np.arange(1, 9)
"""How far one looks at once, from a slot that another key has."""


def tags_of(numbers: Array) -> Array:
    """The tags of int64 numbers."""
    tags: Array = numbers.view(np.uint64) * _MULTIPLIER
    tags += _ADDEND
    return tags


def find(index: Array, tags: Array, shift: int) -> tuple[Array, Array]:
    """The slot of each tag, and its location: 0 if there is none, and the slot is then the last one, always empty."""
    slots: Array = (tags >> np.array(shift, np.uint64)).view(np.int64)
    at = index[slots].view(np.uint64)
    locations = at[1::2]
    missing = at[::2] != tags
    if np.count_nonzero(missing):
        _go_on(index, tags, slots, at[::2], locations, missing)
    return slots, locations


def _go_on(index: Array, tags: Array, slots: Array, at: Array, locations: Array, missing: Array) -> None:
    """Where another key was found, go on until each has its own or an empty slot."""
    pairs = index.view(np.uint64).reshape(-1, 2)
    going = np.flatnonzero(missing & (at != EMPTY))
    while len(going):
        ahead = np.minimum(slots[going, None] + _AHEAD, len(pairs) - 1)
        seen = pairs[ahead, 0]
        own = seen == tags[going, None]
        ends = own | (seen == EMPTY)
        here = (np.arange(len(going)), ends.argmax(axis=1))
        slots[going] = ahead[:, -1]
        hits, places = going[own[here]], ahead[here][own[here]]
        slots[hits], locations[hits] = places, pairs[places, 1]
        missing[hits] = False
        going = going[~ends[here]]
    slots[missing] = len(pairs) - 1
    locations[missing] = 0
