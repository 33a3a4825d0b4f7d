"""Long computations in slices of time, so that nobody waits for a stranger's statement.

`paced` runs a coroutine inside a greenlet. All that it calls, however deep and however synchronous, may then call
`breathe`: once the statement's slice is used up, the greenlet is left and the event loop gets its turn. Statements
whose slice is used up wait in one line, and one of them goes on in each turn of the loop; so heavy statements share
what light ones leave over. A slice is used up by processor work alone: waiting for a worker does not give a new one.

A task that is cancelled (KILL, a lost connection, max_execution_time) is told so where it breathes.

Contract: see `dataflow.breath`. Outside of `paced` all of this does nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from math import inf
from time import perf_counter
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from backend.execution.collector import hold_off, let_go, visit_new
from backend.execution.memory_account import MemoryAccount
from controller.sql.text.depth import large_stacks
from dataflow.breath import breathe_by
from dataflow.values.long_values import weigh_by

T = TypeVar("T")

SLICE_S = 0.003
PART_S = 0.0005
"""How long a part of `parts` should take."""
LARGE = 2_000
"""From so many characters or values on `aside` is worth a thread."""
LONG = 200_000
PARAMETER_LENGTH = 20
"""About so many characters of a statement come with each of its parameters."""
SWITCH_S = 0.0002
"""How long the event loop waits for a thread that computes: at each of its system calls."""
PART_ROWS_MIN = 32
PART_ROWS_MAX = 8192


class _Slices(greenlet):  # type: ignore[misc]
    """A statement that is run in slices. `left_s` is what is left of its slice."""

    def __init__(self, account: MemoryAccount) -> None:
        super().__init__(_drive)
        self.account = account
        self.left_s = SLICE_S
        self.is_heavy = False
        self.is_undisturbed = False
        self.owed: BaseException | None = None
        self.gr_context = getcurrent().gr_context  # what its task says is heard by who listens to the task


class _Clock:
    """When the slice that runs now is used up."""

    until: float = inf


class _Line:
    """Statements that have used up their slices, and wait for the next one."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def join(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._next)
        self._waiting.append(turn)
        return turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        if self._waiting:
            self._waiting[0].get_loop().call_soon(self._next)


_lines: dict[asyncio.AbstractEventLoop, _Line] = {}


@types.coroutine
def paced(work: Coroutine[Any, Any, T], account: MemoryAccount) -> Generator[Any, Any, T]:
    """Run `work` in slices; what it holds in memory counts for `account`."""
    slices = _Slices(account)
    try:
        given = _resumed(slices, slices.switch, work)
        while not slices.dead:
            try:
                value = yield given
            except BaseException as error:
                given = _resumed(slices, slices.throw, error)
            else:
                given = _resumed(slices, slices.switch, value)
    finally:
        if slices.is_heavy:
            let_go()
    result: T = given
    return result


def _resumed(slices: _Slices, go_on: Any, argument: Any) -> Any:
    started = perf_counter()
    _Clock.until = started + slices.left_s
    try:
        return go_on(argument)
    finally:
        _Clock.until = inf
        slices.left_s -= perf_counter() - started


def _drive(work: Coroutine[Any, Any, T]) -> T:
    """Step through the coroutine, handing out what it waits for."""
    outside = getcurrent().parent
    assert outside is not None
    step: Any = work.send
    argument: Any = None
    while True:
        try:
            awaited = step(argument)
        except StopIteration as stop:
            result: T = stop.value
            return result
        try:
            argument = outside.switch(awaited)
            step = work.send
        except BaseException as error:
            argument = error
            step = work.throw


def breathe() -> None:
    """Let others have their turn if this statement's slice is used up."""
    if perf_counter() > _Clock.until:
        _pause()


breathe_by(breathe)


def _pause() -> None:
    slices = getcurrent()
    if not isinstance(slices, _Slices):
        return  # another thread, or a callback within somebody's slice
    loop = asyncio.get_running_loop()
    line = _lines.get(loop)
    if line is None:
        _lines.clear()  # of loops that are over
        line = _lines[loop] = _Line()
    if not slices.is_heavy:
        slices.is_heavy = True
        hold_off()
    visit_new()
    turn = line.join()
    assert slices.parent is not None
    turn._asyncio_future_blocking = True  # as `await` does; who waits is the task around the greenlet
    try:
        slices.parent.switch(turn)
    except BaseException as error:
        turn.cancel()
        if not slices.is_undisturbed:
            raise
        slices.owed = error
    slices.left_s = SLICE_S
    _Clock.until = perf_counter() + SLICE_S


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is done here is done to the end; what would have interrupted it is raised then."""
    slices = getcurrent()
    if not isinstance(slices, _Slices) or slices.is_undisturbed:
        yield
        return
    slices.is_undisturbed = True
    try:
        yield
    finally:
        slices.is_undisturbed = False
        owed, slices.owed = slices.owed, None
        if owed is not None:
            raise owed


def aside(size: int, function: Callable[[], T]) -> T:
    """What `function` returns. If `size`, of a text or a list, is large, it runs in a thread while others have their turn.

    This is for what is done in one go, such as planning a statement of megabytes; it may use nothing that belongs
    to the event loop. KILL does not wait for it.
    """
    slices = getcurrent()
    if size < LARGE or not isinstance(slices, _Slices):
        return function()
    context = contextvars.copy_context()

    def run() -> T:
        hold_off()  # the interpreter is not let go of while somebody looks for garbage among all that is planned
        try:
            return context.run(function)
        finally:
            let_go()

    with large_stacks():
        turn = asyncio.get_running_loop().run_in_executor(_threads(size > LONG), run)
    turn._asyncio_future_blocking = True
    assert slices.parent is not None
    slices.parent.switch(turn)
    return turn.result()


@cache
def _threads(is_long: bool) -> ThreadPoolExecutor:
    """What takes seconds has threads of its own, so that the rest does not wait for it."""
    sys.setswitchinterval(SWITCH_S)
    return ThreadPoolExecutor(2, "long aside" if is_long else "aside")


def account() -> MemoryAccount | None:
    """What the statement that runs now holds in memory; None outside of `paced`."""
    slices = getcurrent()
    return slices.account if isinstance(slices, _Slices) else None


def _note_made(size_bytes: int) -> None:
    mine = account()
    if mine is not None:
        mine.note_made(size_bytes)
        breathe()


weigh_by(_note_made)


def parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """`rows` in parts that take about `PART_S` each, with a breath between them."""
    count = len(rows)
    if count <= PART_ROWS_MIN:
        yield rows
        return
    start, size = 0, PART_ROWS_MIN
    while start < count:
        began = perf_counter()
        yield rows[start : start + size]
        start += size
        now = perf_counter()
        if now > _Clock.until:
            _pause()
        size = _next_size(size, now - began)


def _next_size(size: int, took_s: float) -> int:
    """How many rows come next, after so many took so long."""
    if took_s < PART_S / 2:
        return min(size * 2, PART_ROWS_MAX)
    return max(size // 2, 1) if took_s > PART_S * 2 else size


def batches(values: Iterable[T]) -> Iterator[list[T]]:
    """As `parts`, of what is no sequence, such as the items of a dict."""
    source, size = iter(values), PART_ROWS_MIN
    began = perf_counter()
    while batch := list(islice(source, size)):
        yield batch
        now = perf_counter()
        size = _next_size(size, now - began)
        breathe()
        began = perf_counter()
