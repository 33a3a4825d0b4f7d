"""A place where a long computation may be interrupted for others.

Code below the event loop calls `breathe` inside loops that may be long. What that does is decided by who runs the
computation (`backend.execution.pace`); where nobody has said anything it does nothing.

Contract: a caller of `breathe` changes nothing in between that others read, since any of them may run before
`breathe` returns; it may raise, as KILL does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

PART = 8_192


def _nothing() -> None: ...


class _Breath:
    take: Callable[[], None] = staticmethod(_nothing)


def breathe() -> None:
    _Breath.take()


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slices of `values`, for what runs in a thread: a call into C that takes all of them holds the interpreter until it is done."""
    for start in range(0, len(values), PART):
        yield values[start : start + PART]


def breathe_by(take: Callable[[], None]) -> None:
    """From now on `breathe` calls `take`."""
    _Breath.take = staticmethod(take)
