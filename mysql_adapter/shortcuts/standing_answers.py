"""Answers to lists of keys that many clients ask for in the same words, such as all that a front page shows.

An answer stands as long as its view's file shows the epoch that it was read at: nothing has to be looked up
to know that. A text has to come twice before its answer is kept, as most lists never come again. After a quarter of a second keys are looked
up all the same, so that the worker sees that they are read, and does not evict them.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from backend.execution.answering.instant import Moment
from mysql_adapter.shortcuts.bounded_cache import BoundedCache, Seen
from mysql_adapter.wire.answers import Answer

if TYPE_CHECKING:
    from mysql_adapter.shortcuts.shortcuts import Context, Shortcut

Name = tuple["Context", bytes]
"""A text, and what else its answer depends on."""
ANSWERS_BYTES_MAX = 16 << 20
STANDS_S = 0.25
SEEN_MAX = 10_000


class Standing:
    __slots__ = ("_answer", "_moment", "_until", "shortcut")

    def __init__(self, shortcut: Shortcut, moment: Moment, answer: Answer) -> None:
        self.shortcut = shortcut
        self._moment = moment
        self._answer = answer
        self._until = monotonic() + STANDS_S

    @property
    def stands(self) -> bool:
        return monotonic() < self._until and self._moment.is_now

    @property
    def size(self) -> int:
        return len(self._answer[0])

    def answer(self, _: object) -> Answer:
        """Once it is known that it `stands`."""
        self._moment.count_hit()
        return self._answer


class StandingAnswers:
    """Those of one adapter process."""

    def __init__(self) -> None:
        self._answers: BoundedCache[Name, Standing] = BoundedCache(ANSWERS_BYTES_MAX, _standing_bytes)
        self._texts_seen = Seen(SEEN_MAX)

    def get(self, name: Name) -> Standing | None:
        found = self._answers.get(name)
        return found if found is not None and found.stands else None

    def is_new(self, name: Name) -> bool:
        """Whether the text has not come before, so that its answer need not be kept."""
        return self._texts_seen.is_new(name)

    def keep(self, name: Name, shortcut: Shortcut, moment: Moment, answer: Answer) -> None:
        """The answer was read since `moment` was taken."""
        if moment.is_now:
            self._answers.put(name, Standing(shortcut, moment, answer))

    def clear(self) -> None:
        self._answers.clear()


def _standing_bytes(name: Name, standing: Standing) -> int:
    return 600 + len(name[1]) + standing.size
