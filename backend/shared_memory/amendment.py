"""Entries in which only some numbers change: copied and amended, many at once.

An entry has its numbers twice, in cells and in its encoded row. Where a number stands in the row
follows from the cells before it. As long as it takes as many bytes as before, nothing else in the
entry moves, so numpy can copy entries whole and put the new numbers into all of them.

Invariant: an amended entry has the same bytes as one that is made anew from its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from backend.shared_memory.entry import TAIL_BYTES
from backend.shared_memory.probing import Array

_UPPER_BOUNDS = [1 << 7, 1 << 8, 1 << 16, 1 << 32]
_BOUNDS = np.array([-(1 << 31), -(1 << 15), -(1 << 7), -(1 << 5), 0, *_UPPER_BOUNDS])
"""Between these, numbers are encoded alike."""
_UNSIGNED_BOUNDS, _NOT_NEGATIVE = np.array(_UPPER_BOUNDS, np.uint64), np.array(5)
_WIDTHS = np.array([9, 5, 3, 2, 1, 1, 2, 3, 5, 9])
# Arrays without dimensions are the quickest constants.
_ZERO, _ONE, _THREE, _HALF, _BYTE = np.array(0), np.array(1), np.array(3), np.array(32), np.array(0xFF)


class Amender:
    """Changes the numbers in `columns` of entries with these cell codes, see `amender`."""

    def __init__(self, codes: str, columns: Sequence[int]) -> None:
        self._codes = codes
        self._columns = columns
        self._places = [_place(codes, column) for column in columns]
        used = {each for column, (text, between) in zip(columns, self._places) for each in (column, *between, *text)}
        self._used = np.array(sum(1 << each for each in used))
        self._start = 2 if len(codes) < 16 else 4  # after the heads of the list and of the row
        self._head = len(codes) + TAIL_BYTES // 8
        self._before = np.arange(-self._head, 0)

    def places(self, file: Any, rows: Array, values: Sequence[Array]) -> tuple[list[Array], Array]:
        """Where the last bytes of these numbers stand, counted from `rows`, where the entries' rows begin in the file.

        And for each entry whether it can be amended so.
        """
        words, octets = np.frombuffer(file, np.int64), np.frombuffer(file, np.uint8)
        cells = words[(rows >> _THREE)[:, None] + self._before]
        fits = cells[:, -1] == _ONE  # one row, and no key behind it
        fits &= (cells[:, -2] & self._used) == _ZERO
        ends = []
        for column, value, (text, between) in zip(self._columns, values, self._places):
            end = cells[:, text[0]] >> _HALF if text else np.full(len(rows), self._start)
            for each in between:
                end += _WIDTHS[_kinds(cells[:, each], self._codes[each])]
            old, code = cells[:, column], self._codes[column]
            kinds = _kinds(old, code)
            fits &= _kinds(value, code) == kinds
            end += _WIDTHS[kinds]
            end -= _ONE
            end *= fits
            fits &= octets[rows + end] == old & _BYTE
            ends.append(end)
        return ends, fits

    def amend(self, file: Any, rows: Array, ends: Sequence[Array], values: Sequence[Array]) -> None:
        """Put the values into entries that are copies of those that they fit."""
        words, octets = np.frombuffer(file, np.int64), np.frombuffer(file, np.uint8)
        heads = (rows >> _THREE) - self._head
        for column, end, value in zip(self._columns, ends, values):
            words[heads + column] = value
            at = rows + end
            octets[at] = value.astype(np.uint8)
            widths = _WIDTHS[_kinds(value, self._codes[column])]
            for width in range(3, int(widths.max(initial=0)) + 1):
                at -= _ONE
                value = value >> 8
                some = (widths >= width).nonzero()[0]
                octets[at[some]] = value[some].astype(np.uint8)


def _kinds(numbers: Array, code: str) -> Array:
    """Numbers of the same kind are encoded alike, in as many bytes as `_WIDTHS` has for it."""
    if code == "q":
        return np.asarray(_BOUNDS.searchsorted(numbers, "right"))
    return np.asarray(_UNSIGNED_BOUNDS.searchsorted(numbers.view(np.uint64), "right") + _NOT_NEGATIVE)


@lru_cache(maxsize=1024)
def amender(codes: str, columns: frozenset[int]) -> Amender | None:
    """What changes these columns; None if that is not possible at once."""
    ordered = sorted(columns)
    is_number = all(codes[column] in "qQ" for column in ordered) if columns and codes else False
    between = {each for column in ordered for each in _place(codes, column)[1]} if is_number else set()
    return Amender(codes, ordered) if is_number and all(codes[each] in "qQ" for each in between) else None


def _place(codes: str, column: int) -> tuple[tuple[int, ...], range]:
    """The last text before a column, if there is one, and the columns in between."""
    text = codes.rfind("s", 0, column)
    return (() if text < 0 else (text,)), range(text + 1, column)
