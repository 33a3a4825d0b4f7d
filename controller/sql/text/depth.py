"""Deeply nested statements: read with more room than Python gives, and refused beyond that.

sqlglot and the planner recurse; Python's usual limit is some 35 levels of parentheses. A process that plans for many makes
room once, when it starts. In others, such as an application that uses the client library, what hits the limit runs
again in a thread with a large stack. The caller waits: nothing else of its thread runs meanwhile, so the limit may be raised.
"""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dataflow.errors import Condition, InvalidStatement

FRAMES_MAX = 30_000
STACK_BYTES = 100 << 20
"""A frame of Python that C called takes 2 KB. Linux leaves a main thread's stack 128 MB to grow into."""

_Found = TypeVar("_Found")
_alone = threading.Lock()


def make_room() -> None:
    """From now on the main thread, and threads that are begun in `large_stacks`, may recurse `FRAMES_MAX` deep."""
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    if most == resource.RLIM_INFINITY or most >= STACK_BYTES:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, most))
        sys.setrecursionlimit(FRAMES_MAX)


@contextmanager
def large_stacks() -> Iterator[None]:
    before = threading.stack_size(STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)


def deeply(function: Callable[[], _Found]) -> _Found:
    """What `function` returns; error 1436 if there is no room for it even so."""
    try:
        return function()
    except RecursionError:
        if sys.getrecursionlimit() >= FRAMES_MAX:
            raise too_deep() from None
        return _with_room(function)


def _with_room(function: Callable[[], _Found]) -> _Found:
    found: list[_Found] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as failure:
            failures.append(failure)

    with _alone:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(FRAMES_MAX)
        try:
            with large_stacks():
                thread = threading.Thread(target=run)
                thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
    if failures:
        if isinstance(failures[0], RecursionError):
            raise too_deep() from None
        raise failures[0]
    return found[0]


def too_deep() -> InvalidStatement:
    return InvalidStatement(Condition.STACK_OVERRUN, STACK_BYTES, STACK_BYTES, STACK_BYTES)
