"""The epochs that changed rows of a table, for caches made of all its rows, and for commits that rely on many rows.

An epoch is noted before anything of it is written. So what was read as of an epoch, while none was noted that is later, has no change of
a later one in it, and is as good for all epochs until the next that is noted.

Which rows an epoch has changed is noted of a table from the first time that somebody asks about some of its rows, until nobody has
asked for `WATCHED_EPOCHS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from persistence.layout import ROW_PREFIX_BYTES

WATCHED_EPOCHS = 1_000
KEYS_MAX = 20_000
"""So many changed rows of a table are remembered, the last ones."""


@dataclass(slots=True)
class _Watched:
    """`keys` are the rows that were changed after epoch `since`, with the epochs."""

    since: int
    asked: int
    keys: list[tuple[int, bytes]] = field(default_factory=list)


class RowChanges:
    """`epoch` is the last one before anything is noted."""

    def __init__(self, epoch: int) -> None:
        self._least = self._epoch = epoch
        self._changed: dict[bytes, int] = {}
        self._watched: dict[bytes, _Watched] = {}

    def begin_epoch(self, epoch: int, keys: Iterable[Iterable[bytes]] | None) -> None:
        """`epoch` is about to be written, and changes what has these keys; None: any."""
        self._epoch = epoch
        if keys is None:
            self._changed, self._least = {}, epoch
            self._watched.clear()
            return
        for some in keys:
            for prefix in {key[:ROW_PREFIX_BYTES] for key in some}:
                self._changed[prefix] = epoch
                if prefix in self._watched:
                    self._watch(prefix, epoch, some)

    def last(self, prefix: bytes) -> int:
        """The last epoch that may have changed rows whose keys begin with `prefix`."""
        return max(self._changed.get(prefix, 0), self._least)

    def are_unchanged(self, start: bytes, stop: bytes, epoch: int) -> bool:
        """Whether it is known that no row with start ≤ key < stop, all of one table, has changed after `epoch`."""
        prefix = start[:ROW_PREFIX_BYTES]
        watched = self._watched.setdefault(prefix, _Watched(self._epoch, self._epoch))
        watched.asked = self._epoch
        if self.last(prefix) <= epoch:
            return True
        return watched.since <= epoch and not any(changed > epoch and start <= key < stop for changed, key in watched.keys)

    def _watch(self, prefix: bytes, epoch: int, keys: Iterable[bytes]) -> None:
        watched = self._watched[prefix]
        if epoch - watched.asked > WATCHED_EPOCHS:
            del self._watched[prefix]
            return
        watched.keys += [(epoch, key) for key in keys if key.startswith(prefix)]
        if len(watched.keys) > KEYS_MAX:
            watched.since = watched.keys[-KEYS_MAX // 2 - 1][0]
            watched.keys = [each for each in watched.keys if each[0] > watched.since]
