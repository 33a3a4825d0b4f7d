"""Long runs of plain numbers in statements, read all at once: IN lists, and the rows of VALUES.

A run is the same as its literals one by one, as `template` reads them, or it is none: its numbers
have digits only and are BIGINTs, and what separates them is everywhere the same. What stands
around it is the text that is looked up; `is_plain` tells whether brackets in that are what they look like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RUN_MIN = 32
"""Fewer numbers of rows are read as any others."""
LIST_MIN = 2
"""Fewer numbers of a list are."""
AROUND_LENGTH_MAX = 4 << 10

_DIGITS = b"0123456789"
_BIGINT_MAX = 0x7FFF_FFFF_FFFF_FFFF
_ROW = re.compile(rb"\((?:(, ?)\1*+)?\)(,\s?)")


def number_list(text: bytes) -> tuple[bytes, Array, bytes] | None:
    """What comes before the numbers in the last brackets of `text`, the numbers, and what comes after them."""
    head, _, rest = text.rpartition(b"(")
    body, _, tail = rest.partition(b")")
    shape = body.translate(None, _DIGITS)
    between = b", " if shape[1:2] == b" " else b","
    commas = len(shape) // len(between)
    if commas + 1 < LIST_MIN or len(head) + len(tail) > AROUND_LENGTH_MAX or shape != between * commas:
        return None
    numbers = _numbers(body, commas + 1, (between,))
    return None if numbers is None else (head, numbers, tail)


def number_rows(text: bytes) -> tuple[Array, int] | None:
    """The numbers of `(1, 2), (3, 4)` one after the other, and how many a row has."""
    shape = text.translate(None, _DIGITS)
    row = _ROW.match(shape)
    if row is None:
        return None
    inside, between = row[1] or b",", row[2]
    count, rest = divmod(len(shape) + len(between), len(row[0]))
    if rest or shape != (row[0] * count)[: -len(between)] or text.count(b")" + between + b"(") != count - 1:
        return None
    width = row[0].count(b",")
    if text[:1] != b"(" or text[-1:] != b")" or count * width < RUN_MIN:
        return None
    numbers = _numbers(text.translate(None, b"()"), count * width, (inside, between))
    return None if numbers is None else (numbers, width)


def is_plain(text: bytes) -> bool:
    """Whether there are no strings or comments in `text`, and all quoted names end in it."""
    marks = (b"'", b'"', b"/*", b"--", b"#", b"\\")
    return text.isascii() and not any(mark in text for mark in marks) and text.count(b"`") % 2 == 0


def _numbers(text: bytes, count: int, separators: Sequence[bytes]) -> Array | None:
    """So many numbers between these; None if there is one missing, or too large."""
    if not text[:1].isdigit() or not text[-1:].isdigit() or any(each + b"," in text for each in separators):
        return None
    try:
        numbers = np.fromstring(text, np.int64, sep=",")
    except (ValueError, DeprecationWarning):  # as numpy likes to say that it did not get to the end
        return None
    # What is too large comes as the largest.
    return numbers if len(numbers) == count and numbers.max() != _BIGINT_MAX else None
