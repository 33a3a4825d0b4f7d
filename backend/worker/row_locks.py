"""Row locks: the transactions that hold keys, and those that wait for them.

Invariants:
- A key is held by one owner alone, or by several that share it.
- Whoever waits for a key is in its queue and gets it in order; a holder that wants it for
  itself alone goes first, as nobody could get it before.
- An owner waits for one key of a table at a time.

Locks only keep transactions out of each other's way. Whether a commit happens is decided by
the versions it expects, so locks that are lost cost a retry and never an update. Values, time
and the network are the callers' business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from controller.sql.locking import NOWAIT, WAIT
from dataflow.commit.epoch_messages import Check, Puts, TransactionId, Write
from dataflow.errors import Condition

Owner = TransactionId
"""A client and a number of its own: negative for a holder of locks, else that of a commit under way."""


@dataclass(slots=True, eq=False)
class KeyRequest:
    """Keys to be locked one after the other; `done` is called once, with what it failed of or None."""

    owner: Owner
    keys: Sequence[bytes]
    shared: bool
    waiting: str
    done: Callable[[Condition | None], None]
    position: int = 0
    skipped: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Lock:
    holders: dict[Owner, bool] = field(default_factory=dict)
    """Whether each shares the key."""
    queue: list[KeyRequest] = field(default_factory=list)


def _nobody(key: bytes) -> Iterable[Owner]:
    return ()


class RowLocks:
    """`waits` is told whom an owner waits for from now on. `under_way` names commits that write a key."""

    def __init__(
        self,
        waits: Callable[[Owner, frozenset[Owner]], None],
        under_way: Callable[[bytes], Iterable[Owner]] = _nobody,
    ) -> None:
        self._waits = waits
        self._under_way = under_way
        self._locks: dict[bytes, _Lock] = {}
        self._keys: dict[Owner, list[bytes]] = {}
        self._waiting: dict[Owner, KeyRequest] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def __contains__(self, key: bytes) -> bool:
        """Whether somebody holds the key, or waits for it."""
        return key in self._locks

    def request(self, request: KeyRequest) -> None:
        while request.position < len(request.keys):
            key = request.keys[request.position]
            if not self._take(request, key):
                if request.waiting == NOWAIT:
                    request.done(Condition.LOCK_NOWAIT)
                    return
                if request.waiting == WAIT:
                    self._queue(request, key)
                    return
                request.skipped.append(request.position)
            request.position += 1
        request.done(None)

    def release(self, owner: Owner, keys_max: int = sys.maxsize) -> bool:
        """The owner wants nothing any more, and lets go of so many keys, the last first; True if it has others still."""
        self.withdraw(owner)
        held = self._keys.get(owner, [])
        for _ in range(min(keys_max, len(held))):
            key = held.pop()
            lock = self._locks[key]
            del lock.holders[owner]
            self._serve(key, lock)
        if not held:
            self._keys.pop(owner, None)
        return bool(held)

    def withdraw(self, owner: Owner) -> KeyRequest | None:
        """The owner does not wait any more; it keeps what it has."""
        request = self._waiting.pop(owner, None)
        if request is not None:
            key = request.keys[request.position]
            lock = self._locks[key]
            lock.queue.remove(request)
            self._waits(owner, frozenset())
            self._serve(key, lock)
        return request

    def break_wait(self, owner: Owner) -> None:
        """The owner waits in a circle: its request fails."""
        request = self.withdraw(owner)
        if request is not None:
            request.done(Condition.DEADLOCK)

    def blocker(
        self, owner: Owner, writes: Sequence[Write], checks: Sequence[Check], puts: Sequence[Puts] = ()
    ) -> bytes | None:
        """A key that a commit cannot write, or rely on, as it is another's."""
        locks = self._locks
        if not locks:
            return None
        for key in chain((write[0] for write in writes), *(each.keys for each in puts)):
            lock = locks.get(key)
            if lock is not None and any(holder != owner for holder in lock.holders):
                return key
        for key, _ in checks:
            lock = locks.get(key)
            if lock is not None and any(not shared and holder != owner for holder, shared in lock.holders.items()):
                return key
        return None

    def tell_all(self) -> None:
        """Say again who waits for whom."""
        for request in list(self._waiting.values()):
            self._tell(self._locks[request.keys[request.position]])

    # --- one key

    def _take(self, request: KeyRequest, key: bytes) -> bool:
        owner = request.owner
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = _Lock()
            for commit in self._under_way(key):
                self._hold(commit, key, lock, False)
        held = lock.holders.get(owner)
        if held is False or (held and request.shared):
            return True
        if (held is None and lock.queue) or not _is_free(lock, request):
            return False
        self._hold(owner, key, lock, request.shared)
        return True

    def _hold(self, owner: Owner, key: bytes, lock: _Lock, shared: bool) -> None:
        if owner not in lock.holders:
            self._keys.setdefault(owner, []).append(key)
        lock.holders[owner] = shared

    def _queue(self, request: KeyRequest, key: bytes) -> None:
        lock = self._locks[key]
        lock.queue.insert(0 if request.owner in lock.holders else len(lock.queue), request)
        self._waiting[request.owner] = request
        self._tell(lock)

    def _serve(self, key: bytes, lock: _Lock) -> None:
        """The key may be free for those who wait for it."""
        while lock.queue and _is_free(lock, lock.queue[0]):
            request = lock.queue.pop(0)
            del self._waiting[request.owner]
            self._hold(request.owner, key, lock, request.shared)
            self._waits(request.owner, frozenset())
            request.position += 1
            self.request(request)
        if lock.queue:
            self._tell(lock)
        elif not lock.holders and self._locks.get(key) is lock:
            del self._locks[key]

    def _tell(self, lock: _Lock) -> None:
        """Say who waits for whom; a circle that shows is broken on the way."""
        for request in list(lock.queue):
            if request in lock.queue:
                self._waits(request.owner, _blockers(lock, request))


def _is_free(lock: _Lock, request: KeyRequest) -> bool:
    for holder, shared in lock.holders.items():
        if holder != request.owner and not (shared and request.shared):
            return False
    return True


def _blockers(lock: _Lock, request: KeyRequest) -> frozenset[Owner]:
    blockers = {holder for holder, shared in lock.holders.items() if not (shared and request.shared)}
    for earlier in lock.queue[: lock.queue.index(request)]:
        if not (earlier.shared and request.shared):
            blockers.add(earlier.owner)
    blockers.discard(request.owner)
    return frozenset(blockers)


class WaitGraph:
    """Who waits for whom on all shards, as far as they have said."""

    def __init__(self) -> None:
        self._blockers: dict[Owner, dict[int, frozenset[Owner]]] = {}

    def update(self, shard: int, owner: Owner, blockers: frozenset[Owner]) -> bool:
        """True if the owner now waits for itself."""
        waits = self._blockers.setdefault(owner, {})
        if blockers:
            waits[shard] = blockers
            return self._reaches(blockers, owner)
        waits.pop(shard, None)
        if not waits:
            del self._blockers[owner]
        return False

    def forget(self, shard: int) -> None:
        """The shard is gone, and everybody's locks with it."""
        for owner in list(self._blockers):
            self.update(shard, owner, frozenset())

    def _reaches(self, start: Iterable[Owner], wanted: Owner) -> bool:
        seen: set[Owner] = set()
        left = list(start)
        while left:
            owner = left.pop()
            if owner == wanted:
                return True
            if owner not in seen:
                seen.add(owner)
                for blockers in self._blockers.get(owner, {}).values():
                    left += blockers
        return False
