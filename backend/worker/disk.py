"""The writes of a worker's epochs, one at a time, so that reads, or the views, go on while the disk is waited for.

What fails leaves the stored state unknown, so the process ends: a restart reads what is really there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any, TypeVar

from backend.processes.durations import EPOCHS, WRITES
from dataflow.commit.epoch_effects import PersistEpoch, PreparedEpoch

Record = TypeVar("Record", PersistEpoch, PreparedEpoch)
Result = TypeVar("Result")
Begin = Callable[[PersistEpoch], Callable[[], None]]
Wait = Callable[[], None]

AT_ONCE_WRITES_MAX = 5_000
"""More than these take long enough for others to be answered meanwhile."""
BESIDE_WRITES_MIN = 1_000
"""Fewer than these are written in less time than a thread takes to begin."""

log = logging.getLogger(__name__)


class Disk:
    def __init__(self, is_waited_for: bool) -> None:
        """Unless the disk `is_waited_for`, a write takes less time than to have it done by a thread."""
        self.is_waited_for = is_waited_for
        self._thread = _Thread()
        self._loop = asyncio.get_running_loop()
        self._aside = 0

    def aside(self, write: Callable[[], Result], then: Callable[[Result], None] | None = None) -> None:
        """Do what nobody waits for in the order of all writes, and say when it is done."""
        self._aside += 1

        def done(error: BaseException | None, result: Result) -> None:
            self._aside -= 1
            _go_on(error, lambda: None if then is None else then(result))

        self._thread.run(write, lambda error, result: self._tell(done, error, result))

    def _tell(self, done: Callable[..., None], *arguments: object) -> None:
        """From the thread, what goes on in the loop; nothing does once that is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(done, *arguments)

    def write(self, write: Callable[[Record], None], record: Record, then: Callable[[], None]) -> None:
        """Write the record, and go on with `then`."""
        if self.is_waited_for or self._aside or record.write_count > AT_ONCE_WRITES_MAX:
            self._thread.run(lambda: write(record), lambda error, _: self._tell(_go_on, error, then))
            return
        error: Exception | None = None
        try:
            write(record)
        except Exception as failed:
            error = failed
        _go_on(error, then)

    def write_epoch(self, begin: Begin, epoch: PersistEpoch, then: Callable[[Wait], None], beside: bool) -> None:
        """Write the epoch, and go on with `then`, which is given what waits until it is written.

        With `beside`, it may be written while `then` goes on: where not the disk takes long, but a processor.
        """
        started = perf_counter()

        def go_on(wait: Wait) -> None:
            then(wait)
            EPOCHS.took(perf_counter() - started)

        is_small = epoch.write_count < BESIDE_WRITES_MIN
        if is_small and not self._aside:  # the thread has nothing to do but to wait for the disk
            finish = begin(epoch)
            self.write(lambda record: _timed(finish), epoch, lambda: go_on(_nothing))
            return
        if not beside or self.is_waited_for or is_small:
            self.write(lambda record: _timed(begin(record)), epoch, lambda: go_on(_nothing))
            return
        written: Future[BaseException | None] = Future()
        write = begin(epoch)
        self._thread.run(lambda: _timed(write), lambda error, _: written.set_result(error))
        go_on(lambda: _go_on(written.result(), _nothing))

    def close(self) -> None:
        self._thread.close()


class _Thread:
    """A thread that does what it is given, in order. As cheap as can be: it is used for each epoch."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Callable[[BaseException | None, Any], None]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="disk", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Result], done: Callable[[BaseException | None, Result], None]) -> None:
        """`done` is called in the thread, with the error or the result of `work`."""
        self._queue.put((work, done))

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            work, done = task
            error, result = None, None
            try:
                result = work()
            except BaseException as failed:
                error = failed
            done(error, result)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()


def _timed(write: Callable[[], None]) -> None:
    started = perf_counter()
    write()
    WRITES.took(perf_counter() - started)


def _nothing() -> None:
    """It is written already."""


def _go_on(error: BaseException | None, then: Callable[[], None]) -> None:
    if error is not None:
        log.critical("cannot write: %s; the shard stops", error)
        os._exit(1)
    then()
