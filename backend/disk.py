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

from dataflow.epoch_messages import PersistEpoch, PreparedEpoch

Record = TypeVar("Record", PersistEpoch, PreparedEpoch)
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

    def write(self, write: Callable[[Record], None], record: Record, then: Callable[[], None]) -> None:
        """Write the record, and go on with `then`."""
        if self.is_waited_for or record.write_count > AT_ONCE_WRITES_MAX:
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
