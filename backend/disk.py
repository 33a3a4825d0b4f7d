"""The writes of a worker's epochs, one at a time, so that reads, or the views, go on while the disk is waited for.

What fails leaves the stored state unknown, so the process ends: a restart reads what is really there.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dataflow.epoch_effects import PersistEpoch, PreparedEpoch

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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._aside = 0

    def aside(self, write: Callable[[], Result], then: Callable[[Result], None] | None = None) -> None:
        """Do what nobody waits for in the order of all writes, and say when it is done."""
        self._aside += 1
        future = asyncio.get_running_loop().run_in_executor(self._thread, write)

        def done(done: asyncio.Future[Result]) -> None:
            self._aside -= 1
            _go_on(done.exception(), lambda: None if then is None else then(done.result()))

        future.add_done_callback(done)

    def write(self, write: Callable[[Record], None], record: Record, then: Callable[[], None]) -> None:
        """Write the record, and go on with `then`."""
        if self.is_waited_for or self._aside or record.write_count > AT_ONCE_WRITES_MAX:
            future = asyncio.get_running_loop().run_in_executor(self._thread, write, record)
            future.add_done_callback(lambda done: _go_on(done.exception(), then))
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
        if not beside or self.is_waited_for or epoch.write_count < BESIDE_WRITES_MIN:
            self.write(lambda record: begin(record)(), epoch, lambda: then(_nothing))
            return
        written = self._thread.submit(begin(epoch))
        then(lambda: _go_on(written.exception(), _nothing))

    def close(self) -> None:
        self._thread.shutdown(wait=True)


def _nothing() -> None:
    """It is written already."""


def _go_on(error: BaseException | None, then: Callable[[], None]) -> None:
    if error is not None:
        log.critical("cannot write: %s; the shard stops", error)
        os._exit(1)
    then()
