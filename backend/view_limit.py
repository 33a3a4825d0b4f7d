"""The memory that a worker's views may take, and what is done to keep them within it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from backend.hosted_view import HostedView
from backend.shared_memory.publication import Publisher
from dataflow.clock import MemoryReport
from dataflow.engine import Engine

NEARLY, ROUNDS_REMEMBERED = 0.9, 10
"""While less than this part of the memory is taken, what was read longer ago than so many checks is forgotten."""

log = logging.getLogger(__name__)


class ViewLimit:
    def __init__(self) -> None:
        self._rounds = 0

    def enforce(self, engine: Engine, publisher: Publisher, memory_bytes: int) -> MemoryReport:
        """Evict cold keys until the views fit."""
        limit_bytes = memory_bytes - publisher.memory_bytes
        self._rounds += 1
        taken_bytes = engine.measure().total_bytes
        if taken_bytes > limit_bytes:  # no key has to go for what nobody needs
            publisher.compact(pressed=True)
            limit_bytes = memory_bytes - publisher.memory_bytes
        if taken_bytes > NEARLY * limit_bytes:
            publisher.reference(engine)
        elif self._rounds % ROUNDS_REMEMBERED == 0:
            publisher.forget_reads()
        report = engine.enforce(limit_bytes)
        publisher.publish(engine)
        publisher.compact(pressed=report.evicted_keys > 0)
        if report.only_full_left:
            shared_bytes = publisher.memory_bytes
            log.warning("full views take %d bytes, what is shared %d, the limit is %d", report.full_bytes, shared_bytes, memory_bytes)
        return report


def idle_views(views: Mapping[bytes, HostedView], publisher: Publisher, idle_s: float) -> list[bytes]:
    """The names of those that nobody has used for so long, and that read no named ones."""
    now = time.monotonic()
    idle = []
    for name, hosted in views.items():
        uses = hosted.hits + hosted.misses
        if uses != hosted.uses_seen or publisher.is_read(hosted.view):
            hosted.uses_seen, hosted.used_at = uses, now
        elif not hosted.names and now - hosted.used_at > idle_s:
            idle.append(name)
    return idle
