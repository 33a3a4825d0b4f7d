"""Full cyclic garbage collections are off while statements hold many rows.

Rows form no reference cycles, and visiting a million of them takes longer than many slices. Collections of young objects go on;
they free the cycles that planning leaves.
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
