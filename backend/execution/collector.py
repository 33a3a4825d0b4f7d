"""Cyclic garbage is not looked for among all objects while statements hold many of them.

Rows make no circles, and looking at a million of them takes longer than many slices. Young objects are looked
at as ever, which is where the circles of planning end.
"""

from __future__ import annotations

import gc
from threading import Lock

THRESHOLDS = gc.get_threshold()
OLDEST_NEVER = 1_000_000


class _Holders:
    count = 0
    lock = Lock()


def hold_off() -> None:
    """Somebody holds many objects from now on; to be followed by `let_go`, in any thread."""
    with _Holders.lock:
        _Holders.count += 1
        if _Holders.count == 1:
            gc.set_threshold(*THRESHOLDS[:2], OLDEST_NEVER)


def let_go() -> None:
    with _Holders.lock:
        _Holders.count -= 1
        if _Holders.count == 0:
            gc.set_threshold(*THRESHOLDS)
