"""User-level locks (GET_LOCK and its family) among the connections of one process.

A lock belongs to a connection, may be taken by it several times, and goes with it. Where
several adapters serve one database these locks would exclude nobody on another one, so such
adapters are given no `LocalLocks` and the functions are refused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Lock:
    owner: int
    count: int = 1
    waiters: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)


class LocalLocks:
    def __init__(self) -> None:
        self._locks: dict[str, _Lock] = {}

    async def acquire(self, name: str, owner: int, timeout_s: float) -> bool:
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

    def release(self, name: str, owner: int) -> bool | None:
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

    def release_all(self, owner: int) -> int:
        released = 0
        for key, lock in list(self._locks.items()):
            if lock.owner == owner:
                released += lock.count
                self._pass_on(key, lock)
        return released

    def owner(self, name: str) -> int | None:
        lock = self._locks.get(name.lower())
        return None if lock is None else lock.owner

    def _pass_on(self, key: str, lock: _Lock) -> None:
        while lock.waiters:
            owner, turn = lock.waiters.popleft()
            if not turn.done():
                lock.owner, lock.count = owner, 1
                turn.set_result(None)
                return
        del self._locks[key]
