"""When a worker runs Python's cyclic garbage collection.

A worker's state is millions of small, long-lived objects that are replaced one by one. Python's own counters start a
collection after a net growth of objects, and such a collection visits hundreds of thousands of new objects, hardly one of which is in
the processor's cache. So a worker decides itself when to collect.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ROWS_BETWEEN = 2_000
"""Changed rows between two looks at what is new."""
THRESHOLDS = (50_000, 2, 1_000)


class Garbage:
    def __init__(self) -> None:
        self._rows = 0

    def begin(self) -> None:
        """What is there by now stays, as a rule."""
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)

    @contextmanager
    def many_rows(self, count: int) -> Iterator[None]:
        """So many rows go through the views now. They make no circles, so nobody has to look at what becomes of many."""
        if count <= ROWS_BETWEEN:
            yield
            return
        gc.collect(0)
        gc.disable()
        try:
            yield
        finally:
            gc.freeze()
            gc.enable()

    def rows_changed(self, count: int) -> None:
        self._rows += count
        if self._rows > ROWS_BETWEEN:
            self._rows = 0
            gc.collect(0)
