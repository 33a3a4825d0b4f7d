"""Long values are reported when they are made, to whoever counts a statement's memory and lets others have their turn.

A thousand of them may be made before anybody sees the first row: the results of functions, and the keys by which texts compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from dataflow.breath import breathe

S = TypeVar("S", str, bytes)

LONG = 1 << 16
"""Values of more characters are reported."""
WINDOW = 1 << 13
"""So many characters are looked at one by one in a few milliseconds."""


def _nothing(size: int) -> None: ...


class _Scales:
    weigh: Callable[[int], None] = staticmethod(_nothing)


def weigh(size: int) -> None:
    """A value of so many characters was made. May raise; a caller changes nothing in between that others read."""
    _Scales.weigh(size)


def weigh_by(weigh: Callable[[int], None]) -> None:
    """From now on `weigh` is called with the size of each long value."""
    _Scales.weigh = staticmethod(weigh)


def windows(value: S) -> Iterator[S]:
    """A value in parts, with a breath after each: for what looks at all of its characters."""
    if len(value) <= WINDOW:
        yield value
        return
    for start in range(0, len(value), WINDOW):
        yield value[start : start + WINDOW]
        breathe()


def windows_of(count: int) -> Iterator[int]:
    """The numbers up to a count, with a breath now and then."""
    for number in range(count):
        yield number
        if not number % WINDOW:
            breathe()
