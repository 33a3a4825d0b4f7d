"""LevelDB's compactions, behind everything else that wants a processor.

A compaction takes a processor for a second or more, which writers and readers would wait for. It is
not urgent: LevelDB slows writers down by itself if it is too far behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import plyvel

NICENESS = 5
NICENESS_MAX = 19
THREADS = "/proc/self/task"
_NOTHING = b"\xff\xff"
"""No key begins so."""


def compacting_behind(open_database: Callable[[], plyvel.DB]) -> plyvel.DB:
    """The opened database, whose compactions run when others leave time.

    LevelDB has one thread for all databases of a process, which it starts when it is first needed.
    """
    before = _threads()
    database = open_database()
    database.compact_range(start=_NOTHING, stop=_NOTHING)  # for which the thread is needed
    started = _threads() - before
    if len(started) == 1:  # else it was there already, or others have started threads
        niceness = os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
        os.setpriority(os.PRIO_PROCESS, int(started.pop()), min(niceness, NICENESS_MAX))
    return database


def _threads() -> set[str]:
    return set(os.listdir(THREADS)) if os.path.isdir(THREADS) else set()
