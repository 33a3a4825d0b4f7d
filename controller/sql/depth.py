"""Deeply nested statements: read again with more room, and refused beyond that.

sqlglot and the planner recurse; Python's usual limit is some 35 levels of parentheses. What hits
it runs again in a thread with a large stack, where the limit is high enough for what people
and their tools write. The caller waits: nothing else runs meanwhile, so the limit may be raised.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from dataflow.errors import Condition, InvalidStatement

FRAMES_MAX = 30_000
STACK_BYTES = 512 << 20

_Found = TypeVar("_Found")
_alone = threading.Lock()
_thread = threading.local()


def deeply(function: Callable[[], _Found]) -> _Found:
    """What `function` returns; error 1436 if there is no room for it even so."""
    try:
        return function()
    except RecursionError:
        if hasattr(_thread, "is_crowded"):
            raise NoRoom from None
        return _with_room(function)


class NoRoom(Exception):
    """To be run again where nothing else runs meanwhile."""


def no_room_to_spare() -> None:
    """In this thread `deeply` raises `NoRoom`: others run meanwhile, so the limit may not be raised."""
    _thread.is_crowded = True


def _with_room(function: Callable[[], _Found]) -> _Found:
    found: list[_Found] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as failure:
            failures.append(failure)

    with _alone:
        limit, stack = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(limit, FRAMES_MAX))
        try:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(stack)
    if failures:
        if isinstance(failures[0], RecursionError):
            raise too_deep() from None
        raise failures[0]
    return found[0]


def too_deep() -> InvalidStatement:
    return InvalidStatement(Condition.STACK_OVERRUN, STACK_BYTES, STACK_BYTES, STACK_BYTES)
