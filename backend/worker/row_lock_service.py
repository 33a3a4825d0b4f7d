"""A worker's side of row locks: requests over the network, commits as holders, deadlocks.

The locks of a shard's keys are in the memory of its worker. They go with it, and those of a
client with its connection. A commit that comes without locks holds what it writes until it is
answered, so that nobody is given a row that is about to change. Who waits for whom is told to
worker 0, which finds deadlocks over several shards and makes one of the waiting transactions give up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterator, Set

from backend.network.lock_messages import BreakWait, EndLocks, LockedRows, LockRows, OwnerWaits
from backend.network.messages import Message
from backend.network.transport import Peer, failure
from backend.worker.row_locks import KeyRequest, Owner, RowLocks, WaitGraph
from dataflow.commit.epoch_messages import Committed, Outcome, Stage, StagePart, TransactionId
from dataflow.commit.statement_stage import StatementStage
from dataflow.errors import Condition, Retryable
from persistence.shard_store import ShardStore

RELEASED_AT_ONCE = 500


class RowLockService:
    """`send` takes a message to a shard; worker 0 gets those about waiting."""

    def __init__(self, shard: int, store: ShardStore, send: Callable[[int, Message], None]) -> None:
        self._shard = shard
        self._store = store
        self._send = send
        self._locks = RowLocks(self._waits, self._under_way)
        self._graph = WaitGraph()
        self._owners: dict[Owner, Peer] = {}
        self._staged: dict[TransactionId, Stage | StagePart | StatementStage] = {}
        self._written: dict[TransactionId, Container[bytes]] = {}

    # --- clients

    def lock_rows(self, peer: Peer, request: int, message: LockRows) -> None:
        self._owners[message.owner] = peer

        def done(refusal: Condition | None) -> None:
            if refusal is not None:
                peer.send(failure(Retryable(refusal)), request)
            else:
                values = [self._store.get(key) for key in message.keys]
                peer.send(LockedRows(values, wanted.skipped), request)

        wanted = KeyRequest(message.owner, message.keys, message.shared, message.waiting, done)
        self._locks.withdraw(message.owner)  # what it asked before its connection broke, if anything
        self._locks.request(wanted)

    def end_locks(self, peer: Peer, request: int, message: EndLocks) -> None:
        if message.waiting_only:
            self._locks.withdraw(message.owner)
        else:
            self._release(message.owner)

    def peer_lost(self, peer: Peer) -> None:
        for owner in [owner for owner, client in self._owners.items() if client is peer]:
            self._release(owner)

    def _release(self, owner: Owner) -> None:
        """Little by little, so that nobody waits for one who has locked many rows."""
        self._owners.pop(owner, None)
        if self._locks.release(owner, RELEASED_AT_ONCE):
            asyncio.get_running_loop().call_soon(self._release, owner)

    # --- commits

    def blocker(self, stage: Stage | StagePart) -> bytes | None:
        """A key that another has locked, which the commit must wait for."""
        return self._locks.blocker(stage.owner or stage.transaction, stage.writes, stage.checks, stage.puts)

    def staged(self, stage: Stage) -> None:
        self._staged[stage.transaction] = stage

    def staged_part(self, part: StagePart, written: Container[bytes]) -> None:
        """A part of a large commit, which has `written` until now."""
        self._staged[part.transaction] = part
        self._written[part.transaction] = written

    def is_wanted(self, key: bytes) -> bool:
        """Whether somebody holds the key, or waits for it."""
        return len(self._locks) > 0 and key in self._locks

    def wrote(self, stage: StatementStage, keys: Set[bytes]) -> None:
        """Statements were run, which write these keys with their epoch."""
        self._staged[stage.transaction] = stage
        self._written[stage.transaction] = keys

    def answered(self, transaction: TransactionId, outcome: Outcome | None) -> None:
        """The commit is decided, or given up; with it go the locks of one that has happened."""
        stage = self._staged.pop(transaction, None)
        if stage is None:
            return
        if self._written:
            self._written.pop(transaction, None)
        if len(self._locks):
            self._locks.release(transaction)
            if stage.owner is not None and isinstance(outcome, Committed):
                self._release(stage.owner)

    def _under_way(self, key: bytes) -> Iterator[Owner]:
        for transaction, stage in self._staged.items():
            written = self._written.get(transaction)
            if written is None:
                assert isinstance(stage, Stage)
                writes: dict[bytes, bytes | None] = {}
                stage.write_into(writes)
                written = self._written[transaction] = frozenset(writes)
            if key in written:
                yield stage.owner or transaction

    # --- circles of waiting

    def _waits(self, owner: Owner, blockers: frozenset[Owner]) -> None:
        self.owner_waits(OwnerWaits(self._shard, owner, blockers))

    def owner_waits(self, message: OwnerWaits) -> None:
        if self._shard != 0:
            self._send(0, message)
        elif self._graph.update(message.shard, message.owner, message.blockers):
            if message.shard:
                self._send(message.shard, BreakWait(message.owner))
            else:
                self._locks.break_wait(message.owner)

    def break_wait(self, message: BreakWait) -> None:
        self._locks.break_wait(message.owner)

    def shard_lost(self, shard: int) -> None:
        self._graph.forget(shard)

    def coordinator_found(self) -> None:
        """A new worker 0 knows of nobody who waits."""
        self._locks.tell_all()
