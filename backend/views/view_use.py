"""The views in use: each shard tells shard 0, which retires the others.

A view that a shard has just got counts as used there; one that has gone is forgotten. Those that read named views stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from backend.shared_memory.publication import Publisher
from backend.views.hosted_view import HostedView


class ViewUse:
    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._used_at: dict[bytes, float] = {}
        self._recent: set[bytes] = set()
        """Used since `idle` was last asked."""

    def newly_used(self, views: Mapping[bytes, HostedView], publisher: Publisher) -> list[bytes]:
        """Those of this shard's views that were used since the last call, also by who reads shared memory."""
        seen, self._seen = self._seen, {name: hosted.hits + hosted.misses for name, hosted in views.items()}
        return [name for name, hosted in views.items() if seen.get(name) != self._seen[name] or publisher.is_read(hosted.view)]

    def used(self, views: Iterable[bytes]) -> None:
        """On shard 0: some shard has used these."""
        self._recent.update(views)

    def idle(self, views: Mapping[bytes, HostedView], idle_s: float) -> list[bytes]:
        """On shard 0: those of the views that no shard has used for so long; each is told once in that time."""
        now, recent = time.monotonic(), self._recent
        self._used_at = {
            name: now if name in recent else self._used_at.get(name, now) for name, hosted in views.items() if not hosted.known.names
        }
        found = [name for name, moment in self._used_at.items() if name not in recent and now - moment > idle_s]
        self._recent = set(found)
        return found
