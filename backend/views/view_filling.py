"""Views and keys that take long to fill, filled beside everything else.

Such a fill has an engine of its own over the stored state as of one epoch. What later epochs
change is collected meanwhile; then the engine follows, round by round, until so little is
missing that the rest can be done at once and what was filled be taken over by the engine
that answers. A fill that fails, or is not wanted any more, has touched nothing else.

While work is under way, the fill's engine and source belong to whoever does it, in a thread;
between two rounds, and for all else of the fill always, they belong to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from backend.network.view_messages import FillStatus
from backend.views.known_view import KnownView
from dataflow.expressions.source import Key
from dataflow.runtime.engine import CannotFollow, Engine, View
from dataflow.runtime.fill_lead import ROUNDS_MAX, ROWS_AT_ONCE
from dataflow.runtime.loading import FillBudget, OutOfMemory
from dataflow.state.delta import Delta
from persistence.table_source import TableSource
from persistence.view import StateView

ROWS_AT_ONCE_MAX = 1_000
"""What needs more rows than this to be read is filled in the background."""
SWITCH_INTERVAL_S = 0.0002
"""How long a fill keeps the interpreter from the event loop: at each system call of the loop."""

STUCK_S = 60.0
"""A fill that has read nothing for so long is given up."""

PARTIAL = os.environ.get("MILLRACE_PARTIAL") != "off"
"""For `millrace bench migration` alone: without it every view is full."""

log = logging.getLogger(__name__)


class Stuck(Exception):
    """The fill does not get on."""

    def __init__(self) -> None:
        super().__init__(f"nothing was read for {STUCK_S:.0f} s while it was filled")


class StillFilling(Exception):
    """What was asked for is being filled; `fill.then` says when that is over."""

    def __init__(self, fill: Fill) -> None:
        super().__init__()
        self.fill = fill


class Runner(Protocol):
    """Does work beside the event loop, one piece at a time, and says there when it is done."""

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None: ...

    def renew(self) -> None:
        """What is done now does not get to its end: what comes is done without waiting for it."""
        ...

    def close(self) -> None: ...


class ThreadRunner:
    def __init__(self) -> None:
        self._thread = _thread()
        self._is_closed = False
        sys.setswitchinterval(SWITCH_INTERVAL_S)

    def renew(self) -> None:
        left, self._thread = self._thread, _thread()
        left.shutdown(wait=False, cancel_futures=True)

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        future.add_done_callback(lambda each: self._ended(each, work, done))

    def _ended(self, future: asyncio.Future[None], work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        if not future.cancelled():
            done(future.exception())
        elif not self._is_closed:  # it has waited for one that does not end
            self(work, done)

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(wait=True, cancel_futures=True)


def watch(is_wanted: Callable[[], bool], progress: Callable[[], int | None], give_up: Callable[[], None]) -> None:
    """Look again and again whether something gets on that is done beside the event loop, as long as it is wanted.

    `progress` is what grows as long as somebody works on it, None while nobody does.
    """

    def look(before: int | None) -> None:
        if not is_wanted():
            return
        reached = progress()
        if before is None or reached != before:
            loop.call_later(STUCK_S, look, reached)
        else:
            give_up()

    with suppress(RuntimeError):  # there is no event loop, so nothing is done beside it
        loop = asyncio.get_running_loop()
        look(None)


def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="fill")


class Fill:
    """One view to come, or `keys` of one that is there."""

    def __init__(
        self,
        known: KnownView,
        keys: Iterable[Key],
        source: TableSource,
        limit_bytes: int,
    ) -> None:
        """`source` has the tables as of the epoch it starts from."""
        self.known = known
        self.name = known.name
        self.keys = frozenset(keys)
        self.tables = known.tables
        self.source = source
        self.engine = Engine(source, partial=PARTIAL)
        self.epoch = source.state.epoch
        self.changes: dict[int, Delta] = {}
        self.began = time.perf_counter()
        self.budget = FillBudget(self._needed_bytes, limit_bytes)
        self.rounds = 0
        self._is_running = False
        self._waiting: list[Callable[[Exception | None], None]] = []

    def _needed_bytes(self) -> int:
        """What will be kept. Of a whole view that is its full state; what was looked up for that is let go, unless it is as much again."""
        report = self.engine.measure()
        return report.total_bytes if self.keys else max(report.full_bytes, report.total_bytes // 2)

    @property
    def is_full(self) -> bool:
        """Whether all of a view is filled, not some keys."""
        return not self.keys

    def then(self, callback: Callable[[Exception | None], None]) -> None:
        """Call back when the fill is over: with what went wrong, if asking again would not tell."""
        self._waiting.append(callback)

    def end(self, error: Exception | None) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(error)

    @property
    def behind(self) -> int:
        """How many changed rows wait for it."""
        return sum(map(len, self.changes.values()))

    def status(self) -> FillStatus:
        tables = tuple(sorted(self.tables))
        return FillStatus(self.name, tables, len(self.keys), self.epoch, self.budget.rows, self.rounds, self.behind)

    @property
    def progress(self) -> int | None:
        """What grows as long as somebody works on it; None if nobody does."""
        return self.budget.rows if self._is_running else None

    # --- work, wherever it is done

    def compute(self) -> None:
        self._is_running = True
        with self.engine.spending(self.budget):
            view: View = self.engine.add_view(*self.known.definition)
            self.engine.fill(view, self.keys)
        self.budget.check()
        self._is_running = False

    def follow(self, changes: dict[int, Delta], epoch: int, state: StateView) -> None:
        """Take the changes up to `epoch`, whose stored state is `state`."""
        self._is_running = True
        self.source.advance(state)
        if changes:
            try:
                self.engine.apply(epoch, changes)
            except CannotFollow as failed:
                raise next(iter(failed.views.values())) from None
        self._is_running = False


class Fills:
    """Those under way. `state` says the epoch that the answering engine is at, and its stored state.

    `finish` is called for a fill that is at that epoch, and may raise what a failed fill raises;
    `fail` for one that has failed.
    """

    def __init__(
        self,
        run: Runner,
        state: Callable[[], tuple[int, StateView]],
        finish: Callable[[Fill], None],
        fail: Callable[[Fill, Exception], None],
    ) -> None:
        self._run = run
        self._state = state
        self._finish = finish
        self._fail = fail
        self.under_way: list[Fill] = []

    def begin(self, fill: Fill) -> None:
        self.under_way.append(fill)
        self._run(fill.compute, lambda error: self._done(fill, error))
        watch(lambda: fill in self.under_way, lambda: fill.progress, lambda: self._give_up(fill))

    def _give_up(self, fill: Fill) -> None:
        """It has failed, whatever becomes of its thread."""
        self._run.renew()
        fill.budget.abandoned = True
        self.under_way.remove(fill)
        self._fail(fill, Stuck())
        fill.end(None)

    def find(self, name: bytes) -> Fill | None:
        """The fill of a view that is to come."""
        return next((fill for fill in self.under_way if fill.name == name and not fill.keys), None)

    def collect(self, changes: Mapping[int, Delta]) -> None:
        """An epoch has changed these tables."""
        for fill in self.under_way:
            for table in fill.known.layouts & changes.keys():
                fill.changes.setdefault(table, []).extend(changes[table])

    def abandon(self, fill: Fill) -> None:
        fill.budget.abandoned = True
        self.under_way.remove(fill)
        fill.end(None)

    def close(self) -> None:
        for fill in list(self.under_way):
            fill.budget.abandoned = True
        self.under_way.clear()
        self._run.close()

    def _done(self, fill: Fill, error: BaseException | None) -> None:
        """A round is over."""
        if fill.budget.abandoned:
            fill.engine.close()
            return
        if error is None:
            epoch, state = self._state()
            fill.rounds += 1
            if fill.behind > ROWS_AT_ONCE and fill.rounds < ROUNDS_MAX:
                log.info("fill %s follows %d rows, round %d", fill.name.hex(), fill.behind, fill.rounds)
                changes, fill.changes = fill.changes, {}
                self._run(lambda: fill.follow(changes, epoch, state), lambda each: self._done(fill, each))
                return
            try:
                fill.follow(fill.changes, epoch, state)
                self._finish(fill)
            except Exception as raised:
                error = raised
        self.under_way.remove(fill)
        fill.engine.close()
        if isinstance(error, Exception):
            self._fail(fill, error)
            fill.end(None if isinstance(error, OutOfMemory) else error)
        elif error is not None:
            raise error
        else:
            fill.end(None)

