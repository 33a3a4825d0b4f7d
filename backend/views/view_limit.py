"""The memory that a worker's views may take, and what is done to keep them within it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from backend.shared_memory.publication import Publisher
from dataflow.runtime.engine import Engine
from dataflow.state.clock import MemoryReport

NEARLY, ROUNDS_REMEMBERED = 0.9, 10
"""While less than this part of the memory is taken, what was read longer ago than so many checks is forgotten."""

log = logging.getLogger(__name__)


class ViewLimit:
    def __init__(self) -> None:
        self._rounds = 0

    def enforce(
        self, engine: Engine, publisher: Publisher, memory_bytes: int, evict: Callable[[int], MemoryReport]
    ) -> MemoryReport:
        """Have cold keys leave until the views fit: `evict` takes care of that, given what they may take."""
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
        report = evict(limit_bytes)
        publisher.compact(pressed=report.evicted_keys > 0)
        if report.only_full_left:
            shared_bytes = publisher.memory_bytes
            log.warning("full views take %d bytes, what is shared %d, the limit is %d", report.full_bytes, shared_bytes, memory_bytes)
        return report

