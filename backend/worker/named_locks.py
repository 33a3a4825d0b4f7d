"""User-level locks (GET_LOCK and its family) among whoever asks one process for them.

A lock belongs to an owner, may be taken by it several times, and is passed on in the order in
which others have asked for it. Who owners are, and when they go, is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)


@dataclass(slots=True)
class _Lock(Generic[Owner]):
    owner: Owner
    count: int = 1
    waiters: deque[tuple[Owner, asyncio.Future[None]]] = field(default_factory=deque)


class NamedLocks(Generic[Owner]):
    def __init__(self) -> None:
        self._locks: dict[str, _Lock[Owner]] = {}

    async def acquire(self, name: str, owner: Owner, timeout_s: float) -> bool:
        """Take the lock, waiting for it; a negative time waits for ever."""
        key = name.lower()
        lock = self._locks.get(key)
        if lock is None:
            self._locks[key] = _Lock(owner)
            return True
        if lock.owner == owner:
            lock.count += 1
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (owner, turn)
        lock.waiters.append(entry)
        try:
            await asyncio.wait_for(asyncio.shield(turn), None if timeout_s < 0 else timeout_s)
        except BaseException as error:
            if turn.done():
                # The lock was handed over just as the wait ended.
                if isinstance(error, TimeoutError):
                    return True
                self.release(name, owner)
            else:
                lock.waiters.remove(entry)
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def release(self, name: str, owner: Owner) -> bool | None:
        """True if released, False if it is another's, None if there is no such lock."""
        key = name.lower()
        lock = self._locks.get(key)
        if lock is None:
            return None
        if lock.owner != owner:
            return False
        lock.count -= 1
        if not lock.count:
            self._pass_on(key, lock)
        return True

    def release_all(self, owner: Owner) -> int:
        released = 0
        for key, lock in list(self._locks.items()):
            if lock.owner == owner:
                released += lock.count
                self._pass_on(key, lock)
        return released

    def owner(self, name: str) -> Owner | None:
        lock = self._locks.get(name.lower())
        return None if lock is None else lock.owner

    def _pass_on(self, key: str, lock: _Lock[Owner]) -> None:
        while lock.waiters:
            owner, turn = lock.waiters.popleft()
            if not turn.done():
                lock.owner, lock.count = owner, 1
                turn.set_result(None)
                return
        del self._locks[key]
