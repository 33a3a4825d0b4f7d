"""The numbers, the pace and the clock of a lone worker's epochs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dataflow.commit.alone import Alone
from dataflow.commit.coordinator import Coordinator
from dataflow.commit.writer_pace import WriterPace
from persistence.shard_store import ShardStore

WRITERS_AWAITED_S = 0.001
"""So long an epoch waits for writers that have just been answered, where the disk is waited for."""


def alone_of(store: ShardStore, coordinator: Coordinator | None) -> Alone:
    assert coordinator is not None
    return Alone(store.next_epoch, coordinator.closed_alone, WriterPace() if store.waits_for_disk else None)


class OpeningAlarm:
    """Does something a moment after it was asked for, once, however often that was; without a disk, in the loop's next turn."""

    def __init__(self, store: ShardStore, action: Callable[[], None]) -> None:
        self._seconds = WRITERS_AWAITED_S if store.waits_for_disk else 0.0
        self._action = action
        self._is_set = False

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            loop = asyncio.get_running_loop()
            if self._seconds:
                loop.call_later(self._seconds, self._ring)
            else:
                loop.call_soon(self._ring)

    def _ring(self) -> None:
        self._is_set = False
        self._action()
