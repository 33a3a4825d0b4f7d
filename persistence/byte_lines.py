"""Byte strings of the same length for many rows, made by numpy: a line of an array each."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SHORT, SHORT_MAX = 0x90, 15
"""How msgpack begins an array of a few values, and how many these can be."""
_NUMBERS_BELOW = 0x80
"""A byte below this is a number itself."""
_WIDTHS = {0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
"""The bytes of a number in msgpack, by the first of them."""
_PACKED = ((1 << 8, 0xCC, ">u1"), (1 << 16, 0xCD, ">u2"), (1 << 32, 0xCE, ">u4"))


def lines(prefix: bytes, *parts: Array) -> list[bytes]:
    """What stands in each line of all parts, behind the prefix."""
    width = len(prefix) + sum([part.shape[1] for part in parts])
    made = np.empty((len(parts[0]), width), np.uint8)
    made[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    start = len(prefix)
    for part in parts:
        made[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    found: list[bytes] = np.ndarray(len(made), np.dtype((np.void, width)), made).tolist()
    return found


def big_endian(numbers: Array, kind: str = ">i8") -> Array:
    return numbers.astype(kind).view(np.uint8).reshape(len(numbers), -1)


def packed(numbers: Array) -> Array:
    """The numbers, int64, in msgpack, all in as many bytes as the largest takes."""
    least, most = numbers.min(), numbers.max()
    if least >= 0 and most < 1 << 7:
        return big_endian(numbers, ">u1")
    mark, kind = 0xD3, ">i8"
    if least >= 0:
        mark, kind = next(((mark, kind) for limit, mark, kind in _PACKED if most < limit), (mark, kind))
    octets = big_endian(numbers, kind)
    made = np.empty((len(octets), 1 + octets.shape[1]), np.uint8)
    made[:, 0], made[:, 1:] = mark, octets
    return made


def number_places(octets: Array, count: int) -> list[slice] | None:
    """Where the columns stand in lines that are each a msgpack array of `count` numbers; None if they are not, or not all alike."""
    first = octets[0].tolist()
    if count > SHORT_MAX or first[0] != SHORT + count:
        return None
    places, at, marks = [], 1, [0]
    for _ in range(count):
        mark = first[at] if at < len(first) else None
        if mark in _WIDTHS:
            marks.append(at)
            width = _WIDTHS[mark]
        elif mark is not None and (octets[:, at] < _NUMBERS_BELOW).all():
            width = 1
        else:
            return None
        places.append(slice(at, at + width))
        at += width
    alike = at == len(first) and (octets[:, marks] == octets[0, marks]).all()
    return places if alike else None
