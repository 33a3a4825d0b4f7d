"""The epoch that last changed rows of a table, for caches made of all its rows.

An epoch is noted before anything of it is written. So what was read as of an epoch, while none was noted that is later, has no change of
a later one in it, and is as good for all epochs until the next that is noted.
"""

from __future__ import annotations

from collections.abc import Iterable

from persistence.layout import ROW_PREFIX_BYTES


class RowChanges:
    """`epoch` is the last one before anything is noted."""

    def __init__(self, epoch: int) -> None:
        self._least = epoch
        self._changed: dict[bytes, int] = {}

    def begin_epoch(self, epoch: int, keys: Iterable[Iterable[bytes]] | None) -> None:
        """`epoch` is about to be written, and changes what has these keys; None: any."""
        if keys is None:
            self._changed, self._least = {}, epoch
            return
        for some in keys:
            for prefix in {key[:ROW_PREFIX_BYTES] for key in some}:
                self._changed[prefix] = epoch

    def last(self, prefix: bytes) -> int:
        """The last epoch that may have changed rows whose keys begin with `prefix`."""
        return max(self._changed.get(prefix, 0), self._least)
