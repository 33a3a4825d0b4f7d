"""The coordinator of a lone shard: epochs are opened and closed without asking anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from dataflow.commit.writer_pace import WriterPace


class Counted(Protocol):
    @property
    def count(self) -> int:
        """How many statements wait."""
        ...


class Alone:
    def __init__(self, next_epoch: Callable[[], int], closed: Callable[[int], None], pace: WriterPace | None = None) -> None:
        """`closed` is told of each epoch that is over. Without a `pace`, an epoch takes what comes until it is `due`."""
        self.next_epoch = next_epoch
        self._closed = closed
        self._pace = pace

    def is_enough(self, staged: Iterable[Counted]) -> bool:
        """Whether an epoch may be opened; else it is `due` in a moment."""
        pace = self._pace
        return pace is not None and (not pace.is_waiting or pace.is_enough(_count(staged)))

    def due(self) -> None:
        """No more has come."""
        if self._pace is not None and self._pace.is_waiting:
            self._pace.in_vain()

    def finished(self, epoch: int, answered: Iterable[Counted], staged: Iterable[Counted]) -> None:
        """An epoch is over, in which these were answered, and those have come meanwhile."""
        self._closed(epoch)
        if self._pace is not None:
            self._pace.answered(_count(answered), _count(staged))


def _count(stages: Iterable[Counted]) -> int:
    return sum([stage.count for stage in stages])
