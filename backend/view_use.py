"""Which of the views that several shards keep are in use: each shard tells shard 0, which lets the others go.

A view that a shard has just got counts as used there; one that has gone is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping


class ViewUse:
    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._used_at: dict[bytes, float] = {}

    def newly_used(self, uses: Mapping[bytes, int], read: Iterable[bytes]) -> list[bytes]:
        """Those of the views with so many uses each that were used since the last call, or are in `read`."""
        used = {name for name, count in uses.items() if self._seen.get(name) != count}
        self._seen = dict(uses)
        return sorted(used.union(read))

    def used(self, views: Iterable[bytes]) -> None:
        """On shard 0: some shard has used these."""
        now = time.monotonic()
        self._used_at.update(dict.fromkeys(views, now))

    def idle(self, views: Iterable[bytes], idle_s: float) -> list[bytes]:
        """On shard 0: those of the views that no shard has used for so long; each is told once in that time."""
        now = time.monotonic()
        self._used_at = {name: self._used_at.get(name, now) for name in views}
        found = [name for name, moment in self._used_at.items() if now - moment > idle_s]
        self.used(found)
        return found
