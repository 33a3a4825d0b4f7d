"""The row locks of one transaction: what it holds where, until its end.

A statement of its own keeps them over all its tries. Locks that were lost on the way (a worker
was restarted) are noticed by nobody but the commit, which checks versions in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from backend.clustering.store import Address, Owner, Store, Stored
from controller.sql.locking import SKIP, Locking
from dataflow.errors import Condition, Retryable

TIMEOUT_S = 50.0
"""innodb_lock_wait_timeout, unless the session has set it."""


_REFUSALS = frozenset({Condition.LOCK_WAIT_TIMEOUT, Condition.LOCK_NOWAIT, Condition.DEADLOCK})


class LockRefused(Retryable):
    """A lock was not to be had: in time, at once, or without a circle of waiting."""


class HeldLocks:
    def __init__(self, store: Store, timeout_s: float = TIMEOUT_S) -> None:
        self.owner: Owner | None = None
        self.timeout_s = timeout_s
        self.gate: Callable[[Sequence[Address]], None] | None = None
        """Is told what is wanted first, before anything is locked; it may raise."""
        self._store = store
        self._shards: set[int] = set()
        self._alone: set[Address] = set()
        self._shared: set[Address] = set()

    def missing(self, addresses: Iterable[Address], shared: bool) -> list[Address]:
        """Those that are still to be locked."""
        return [
            each for each in addresses if each not in self._alone and not (shared and each in self._shared)
        ]

    async def lock(
        self, addresses: Sequence[Address], locking: Locking
    ) -> tuple[list[Stored | None], list[int]]:
        """The values under the addresses now, and the places of those that are another's and were skipped."""
        if self.owner is None:
            if self.gate is not None:
                self.gate(addresses)
            self.owner = self._store.lock_owner()
        self._shards.update(shard for shard, _ in addresses)
        try:
            found, skipped = await self._store.lock(
                self.owner, addresses, locking.shared, locking.waiting, self.timeout_s
            )
        except Retryable as error:
            if error.condition in _REFUSALS:
                raise LockRefused(error.condition) from None
            raise
        held = self._shared if locking.shared else self._alone
        held.update(addresses)
        if locking.waiting == SKIP:
            held.difference_update(addresses[place] for place in skipped)
        return found, skipped

    def released(self, shards: Iterable[int]) -> None:
        """A commit over these shards has happened and took the locks there with it."""
        self._shards.difference_update(shards)

    def release(self) -> None:
        if self.owner is not None and self._shards:
            self._store.unlock(self.owner, self._shards)
        self.owner = None
        self._shards.clear()
        self._alone.clear()
        self._shared.clear()
