"""Messages about row locks: from clients to shards, and among shards about waiting transactions."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.commit.epoch_messages import Stored, TransactionId


@dataclass(frozen=True, slots=True)
class LockRows:
    """Lock keys of the shard for `owner` until EndLocks or its commit; answered by LockedRows.

    `waiting` is what to do about a key that is another's: wait, nowait (fail) or skip.
    """

    owner: TransactionId
    keys: list[bytes]
    shared: bool
    waiting: str


@dataclass(frozen=True, slots=True)
class LockedRows:
    """The values of the keys now; `skipped` are the places of those that were not locked."""

    values: list[Stored | None]
    skipped: list[int]


@dataclass(frozen=True, slots=True)
class EndLocks:
    """`owner` gives up its locks, or only what it waits for."""

    owner: TransactionId
    waiting_only: bool = False


@dataclass(frozen=True, slots=True)
class RowLocked:
    """In answer to Stage: nothing was done, as another has locked the key."""

    key: bytes


@dataclass(frozen=True, slots=True)
class OwnerWaits:
    """To shard 0: whom an owner of locks now waits for on the shard."""

    shard: int
    owner: TransactionId
    blockers: frozenset[TransactionId]


@dataclass(frozen=True, slots=True)
class BreakWait:
    """From shard 0: `owner` waits in a circle, so its request fails."""

    owner: TransactionId
