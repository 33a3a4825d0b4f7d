"""Long values are reported when they are made, to whoever counts a statement's memory and lets others have their turn.

A thousand of them may be made before anybody sees the first row: the results of functions, and the keys by which texts compare.
"""

from __future__ import annotations

from collections.abc import Callable

LONG = 1 << 16
"""Values of more characters are reported."""


def _nothing(size: int) -> None: ...


class _Scales:
    weigh: Callable[[int], None] = staticmethod(_nothing)


def weigh(size: int) -> None:
    """A value of so many characters was made. May raise; a caller changes nothing in between that others read."""
    _Scales.weigh(size)


def weigh_by(weigh: Callable[[int], None]) -> None:
    """From now on `weigh` is called with the size of each long value."""
    _Scales.weigh = staticmethod(weigh)
