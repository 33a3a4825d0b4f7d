"""The weights of characters, read from `weights.bin` when a text first needs them.

The file was derived from MariaDB (tests/unit/dataflow/collation_weights.py). Its layout: for each
table its name, number of levels and the sizes of three compressed arrays, then those arrays.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left
from functools import cache
from importlib.resources import files
from itertools import accumulate

from dataflow.values.collation.character_sets import tailoring

_HEADER = struct.Struct("<16sB3I")
_COMMON = ((), (0x20,), (0x02,))


class Weights:
    """One table. `of(character)` gives its weights at each level."""

    units: tuple[str, ...] = ()

    def __init__(self, name: str, levels: int, points: array[int], counts: array[int], weights: array[int]) -> None:
        self.name = name
        self.levels = levels
        self._points = points
        self._counts = counts
        self._weights = weights
        self._offsets = array("I", accumulate(counts, initial=0))

    def of(self, character: str) -> tuple[tuple[int, ...], ...]:
        point = ord(character)
        at = bisect_left(self._points, point)
        if at < len(self._points) and self._points[at] == point:
            first = at * self.levels
            return tuple(
                tuple(self._weights[self._offsets[level] : self._offsets[level + 1]])
                for level in range(first, first + self.levels)
            )
        return (self._implicit(point), *_COMMON[1 : self.levels])

    def _implicit(self, point: int) -> tuple[int, ...]:
        if self.name == "general":
            return (point if point < 0x10000 else 0xFFFD,)
        if self.name == "unicode" and point > 0xFFFF:
            return (0xFFFD,)
        if 0x3400 <= point <= 0x4DB5 or 0x20000 <= point <= 0x2A6D6:
            base = 0xFB80
        elif 0x4E00 <= point <= 0x9FA5:
            base = 0xFB40
        else:
            base = 0xFBC0
        return base + (point >> 15), point & 0x7FFF | 0x8000


class Tailored:
    """The weights of a language: those of UCA 4.0.0, but for some characters; `units` are several that count as one."""

    def __init__(self, language: str) -> None:
        old = language == "general_mysql500_ci"
        self._base = weights("general" if old else "unicode")
        self._own = {"ß": (0xDF,)} if old else tailoring(language)
        self.units = tuple(sorted((text for text in self._own if len(text) > 1), key=len, reverse=True))

    def of(self, character: str) -> tuple[tuple[int, ...], ...]:
        found = self._own.get(character)
        return self._base.of(character) if found is None else (found,)


@cache
def weights(name: str) -> Weights:
    data = files(__package__).joinpath("weights.bin").read_bytes()
    at = 0
    while at < len(data):
        found, levels, *sizes = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        if found.rstrip(b"\0").decode() == name:
            arrays = (array("I"), array("B"), array("H"))
            for target, size in zip(arrays, sizes):
                target.frombytes(zlib.decompress(data[at : at + size]))
                at += size
            return Weights(name, levels, *arrays)
        at += sum(sizes)
    raise AssertionError(f"no weights named {name}")
