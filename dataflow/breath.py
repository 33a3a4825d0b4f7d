"""A place where a long computation may be interrupted for others.

Code below the event loop calls `breathe` inside loops that may be long. What that does is decided by who runs the
computation (`backend.execution.pace`); where nobody has said anything it does nothing.

Contract: a caller of `breathe` changes nothing in between that others read, since any of them may run before
`breathe` returns; it may raise, as KILL does.
"""

from __future__ import annotations

from collections.abc import Callable


def _nothing() -> None: ...


class _Breath:
    take: Callable[[], None] = staticmethod(_nothing)


def breathe() -> None:
    _Breath.take()


def breathe_by(take: Callable[[], None]) -> None:
    """From now on `breathe` calls `take`."""
    _Breath.take = staticmethod(take)
