"""The rows that a statement holds: counted, and let go in slices.

`Rows` is a list. Its memory counts for the statement that made it until nobody refers to the list any more. Freeing a
million rows takes a tenth of a second, so a long list is then emptied bit by bit in later turns of the event loop. So is a
`Keyed`, which is a dict, and what is given to `drop`.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Iterable, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, TypeVar

from backend.execution.collector import hold_off, let_go
from backend.execution.memory_account import MemoryAccount, shallow_size_of, size_beside, size_of
from backend.execution.pace import account

K = TypeVar("K")
T = TypeVar("T")

LONG = 2_000
ITEM_BYTES = 64
ENTRY_BYTES = 200
"""What an entry of a dict takes with the list that is in it."""
COUNTED_ENTRIES_MAX = 64
ENTRIES_MANY = 16
"""The entries of a `Keyed` may be large, each."""
FREED_AT_ONCE = 32
SWEEP_S = 0.0005


class Weight:
    """Memory that counts as long as this object is there."""

    __slots__ = ("_account", "_bytes")

    def __init__(self) -> None:
        self._account: MemoryAccount | None = account()
        self._bytes = 0

    def add(self, size_bytes: int) -> None:
        if self._account is not None:
            self._bytes += size_bytes
            self._account.take(size_bytes)

    def __del__(self) -> None:
        if self._account is not None:
            self._account.give(self._bytes)


class Rows(list[T]):
    __slots__ = ("_account", "_bytes")

    def __init__(self) -> None:
        self._account: MemoryAccount | None = account()
        self._bytes = 0

    def add(self, part: Sequence[T]) -> None:
        """Rows with values of their own."""
        self += part
        if self._account is not None:
            self._take(size_of(part))

    def add_shared(self, part: Sequence[T]) -> None:
        """Rows whose values are those of others."""
        self += part
        if self._account is not None:
            self._take(shallow_size_of(part))

    def add_made(self, item: T, row: Sequence[Any], source: Iterable[Any]) -> None:
        """An item that holds a `row` of which some values are those of its `source`, which somebody else holds."""
        self.append(item)
        if self._account is not None:
            self._take(ITEM_BYTES + size_beside(row, source))

    def _take(self, size_bytes: int) -> None:
        assert self._account is not None
        self._bytes += size_bytes
        self._account.take(size_bytes)

    def __del__(self) -> None:
        if self._account is not None:
            self._account.give(self._bytes)
        if len(self) > LONG:
            drop(self)


class Keyed(dict[K, T]):
    """Entries by key that a statement holds: counted, if `count_new` is called each time when some were added."""

    __slots__ = ("_counted", "_weight")

    def __init__(self) -> None:
        self._weight = Weight()
        self._counted = 0

    def count_new(self) -> None:
        new = len(self) - self._counted
        if new:
            self._counted += new
            last = list(islice(reversed(self.items()), COUNTED_ENTRIES_MAX))[:new]
            self._weight.add(new * ENTRY_BYTES + size_of(last) * new // len(last))

    def __del__(self) -> None:
        if len(self) > ENTRIES_MANY:
            del self._weight
            _later(self)


def weighed(rows: list[T]) -> list[T]:
    """A few rows, which count as long as nobody holds more than them; the quick way for short lists."""
    mine = account()
    if mine is not None and rows:
        size_bytes = size_of(rows)
        mine.take(size_bytes)
        mine.give(size_bytes)
    return rows


def held(parts: Iterable[Sequence[T]]) -> Rows[T]:
    """All rows of the parts, which are made one after the other."""
    rows: Rows[T] = Rows()
    for part in parts:
        rows.add(part)
    return rows


def held_shared(parts: Iterable[Sequence[T]]) -> Rows[T]:
    """As `held`, of rows whose values are those of others."""
    rows: Rows[T] = Rows()
    for part in parts:
        rows.add_shared(part)
    return rows


_dropped: list[Any] = []


class _Sweeper:
    """The event loop that lets go of what was dropped, while there is any."""

    loop: asyncio.AbstractEventLoop | None = None


def drop(what: list[Any] | dict[Any, Any] | set[Any]) -> None:
    """Let go of a list, dict or set that nobody uses any more."""
    if len(what) > LONG:
        _later(what)


def _later(what: list[Any] | dict[Any, Any] | set[Any]) -> None:
    """Let go of it bit by bit, where there is an event loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    # Who is saved by his `__del__` counts as new, and the next collection of new objects would visit all that he holds.
    ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(what))
    _dropped.append(what)
    if _Sweeper.loop is None or _Sweeper.loop.is_closed():
        if _Sweeper.loop is None:
            hold_off()
        _Sweeper.loop = loop
        loop.call_soon(_sweep, loop)


def _sweep(loop: asyncio.AbstractEventLoop) -> None:
    until = perf_counter() + SWEEP_S
    while _dropped and perf_counter() < until:
        last = _dropped[-1]
        if not last:
            _dropped.pop()
        elif isinstance(last, list):
            del last[-FREED_AT_ONCE:]
        else:
            take = last.popitem if isinstance(last, dict) else last.pop
            for _ in range(min(FREED_AT_ONCE, len(last))):
                take()
    if _dropped:
        loop.call_soon(_sweep, loop)
    else:
        _Sweeper.loop = None
        let_go()
