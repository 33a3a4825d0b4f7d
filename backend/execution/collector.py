"""Full cyclic garbage collections are off while statements hold many rows.

Rows form no reference cycles, and visiting a million of them takes longer than many slices. Collections of young objects go on;
they free the cycles that planning leaves. Python starts them by the number of objects made less that of objects freed, so a statement that
frees one million rows while it makes another would have all the new ones visited at once: `visit_new` is called after each slice.
"""

from __future__ import annotations

import gc
from threading import Lock

HELD_OFF = (5_000, 10, 1_000_000)
"""Young objects in collections of a millisecond or two; the oldest never."""


class _Holders:
    count = 0
    lock = Lock()
    thresholds = gc.get_threshold()
    """Those of the process, while nobody holds many objects."""


def hold_off() -> None:
    """Somebody holds many objects from now on; to be followed by `let_go`, in any thread."""
    with _Holders.lock:
        _Holders.count += 1
        if _Holders.count == 1:
            _Holders.thresholds = gc.get_threshold()
            gc.set_threshold(*HELD_OFF)


def visit_new() -> None:
    """Collect what is new, and count the rest as old."""
    gc.collect(1)


def let_go() -> None:
    with _Holders.lock:
        _Holders.count -= 1
        if _Holders.count == 0:
            gc.set_threshold(*_Holders.thresholds)
