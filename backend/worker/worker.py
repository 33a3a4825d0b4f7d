"""A worker process: serves one shard to clients and to its peers.

The decisions are `dataflow.commit.epochs`' and `dataflow.commit.coordinator`'s; this module carries out
what they want: it sends their messages, writes to LevelDB (`backend.worker.disk`) so that
reads go on during an fsync, and keeps track of who waits for which transaction. Reads are
answered from the stored state as it is, unless the shard is in doubt about an epoch after a
restart; then they wait until it knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, get_args

from backend.network.bundles import BundleSent
from backend.network.feed_messages import CountFeed, ReadFeed
from backend.network.lock_messages import BreakWait, EndLocks, LockRows, OwnerWaits, RowLocked
from backend.network.messages import (
    Acknowledged,
    Allocate,
    Allocated,
    AskEpoch,
    AskStatus,
    Lookup,
    Message,
    SetTables,
    Stop,
)
from backend.network.miss_messages import LookupEach
from backend.network.program_messages import ChangeViews
from backend.network.session_messages import SessionMessage
from backend.network.statement_messages import AddStatement, RunStatements
from backend.network.transport import Listeners, Peer, failure, listen
from backend.shared_memory.segment import SegmentNames
from backend.views.followed_views import FollowedViews
from backend.views.view_audits import ViewAudits
from backend.views.view_filling import StillFilling, ThreadRunner
from backend.views.views_of_several import ViewsOfSeveral
from backend.views.worker_views import WorkerViews
from backend.worker.disk import Disk
from backend.worker.epoch_questions import EpochQuestions
from backend.worker.feed_service import FeedService
from backend.worker.garbage import Garbage
from backend.worker.large_commits import LargeCommits
from backend.worker.lone_epochs import OpeningAlarm, alone_of
from backend.worker.loop_holds import LoopHolds
from backend.worker.row_lock_service import RowLockService
from backend.worker.session_services import SessionServices
from backend.worker.shard_reads import STATE_READS, ShardReads
from backend.worker.statement_service import StatementService
from backend.worker.table_versions import TableVersions
from backend.worker.worker_status import shard_status
from dataflow.commit import epoch_effects as do
from dataflow.commit.coordinator import Coordinator
from dataflow.commit.epoch_messages import (
    EpochLanded,
    EpochWanted,
    Inquire,
    ShardJoined,
    Stage,
    StagePart,
    ToCoordinator,
    ToShard,
    TransactionId,
    ViewsFailed,
)
from dataflow.commit.epochs import ShardEpochs
from dataflow.commit.statement_stage import StatementStage
from dataflow.errors import Condition, InvalidStatement, MillraceError
from persistence.shard_store import ShardStore

WAITING_FOR_CERTAINTY = (*STATE_READS, ReadFeed, CountFeed, Lookup, LookupEach, Inquire, LockRows)
FROM_COORDINATOR = get_args(ToShard)
FROM_SHARDS = (*get_args(ToCoordinator), OwnerWaits)

log = logging.getLogger(__name__)


class Worker:
    """One shard, served. `stopped` is set when a peer asked the process to end."""

    def __init__(
        self, shard: int, shard_count: int, store: ShardStore, memory_bytes: int, names: SegmentNames | None = None
    ) -> None:
        self.shard = shard
        self.store = store
        self.garbage = Garbage()
        self.views: WorkerViews
        if shard_count == 1:
            self.views = FollowedViews(store, memory_bytes, names, ThreadRunner(), ThreadRunner(), self.garbage, self)
        else:
            self.views = ViewsOfSeveral(self, shard, shard_count, store, memory_bytes, names, ThreadRunner())
        self.coordinator: Coordinator | None = None
        if shard == 0:
            self.coordinator = Coordinator(shard_count, store.next_epoch, store.decisions(), store.readable_epoch)
        alone = alone_of(store, self.coordinator) if shard_count == 1 else None
        self.is_alone = shard_count == 1
        self._opening = OpeningAlarm(store, lambda: self.run(self.epochs.due()))
        self.epochs: ShardEpochs = ShardEpochs(shard, store, store.prepared(), self.views, alone)
        self._services = SessionServices()
        self._locks = RowLockService(shard, store, self._tell_shard)
        self.statements = StatementService(shard, shard_count, store, self._locks)
        self.stopped = asyncio.Event()
        self.tables = TableVersions(self, self.views)
        self._disk = Disk(store.waits_for_disk)
        self._effects: deque[do.ShardEffect | do.Send] = deque()
        self._carrying_out = False
        self._waiting: dict[TransactionId, list[tuple[Peer, int]]] = {}
        self._large = LargeCommits(store, self._disk, self._waiting)
        self._shard_of_peer: dict[Peer, int] = {}
        self._peer_of_shard: dict[int, Peer] = {}
        self._coordinator_peer: Peer | None = None
        self._held: list[tuple[Peer, int, Any]] = []
        self._questions = EpochQuestions(self.coordinator)
        self.holds = LoopHolds()
        self._transactions = 0
        self._reads = ShardReads(store)
        self._feeds = FeedService(store, self._disk, self.views, self)
        self._handlers: dict[type, Callable[[Peer, int, Any], None]] = {
            Stage: self._stage,
            StagePart: self._stage_part,
            Inquire: self._inquire,
            **self._reads.handlers,
            **self._feeds.handlers,
            LockRows: self._locks.lock_rows,
            EndLocks: self._locks.end_locks,
            Allocate: self._allocate,
            SetTables: self.tables.set,
            **self.views.handlers,
            **ViewAudits(self.views).handlers,
            AskEpoch: self._questions.ask,
            AskStatus: self._status,
            Stop: self._stop,
            AddStatement: self.statements.add,
            RunStatements: self._run_statements,
        }
        if shard == 0:
            self._handlers |= dict.fromkeys(get_args(SessionMessage), self._services.handle)
        self._handlers |= dict.fromkeys(FROM_SHARDS, self._from_shard)

    async def serve(self, host: str, secret: bytes) -> tuple[Listeners, int]:
        server, port = await listen(host, 0, secret, self.handle, on_lost=self._peer_lost)
        self._large.move()
        if self.coordinator is not None:
            self.run(self.epochs.coordinator_found())
        return server, port

    def close(self) -> None:
        """After the last epoch: the store is closed cleanly."""
        self.views.close()
        self._reads.close()
        self._disk.close()
        self.store.close()

    # --- connections to other shards: to the coordinator's, and those with lower numbers --------

    def shard_found(self, shard: int, peer: Peer) -> None:
        self.views.shard_found(shard, peer)
        if shard == 0:
            self._coordinator_peer = peer
            self._locks.coordinator_found()
            self.run(self.epochs.coordinator_found())

    def shard_lost(self, peer: Peer) -> None:
        if self._coordinator_peer is peer:
            self._coordinator_peer = None
            self.epochs.coordinator_lost()
            self.views.start(0)
            self.run([])
        self.views.peer_lost(peer)

    def from_shard(self, peer: Peer, request: int, message: Any) -> None:
        if isinstance(message, BundleSent):
            self.handle(peer, request, message)
        elif isinstance(message, BreakWait):
            self._locks.break_wait(message)
        elif peer is self._coordinator_peer and isinstance(message, FROM_COORDINATOR):
            self.run(self.epochs.handle(message))

    def tell_coordinator(self, message: Message) -> None:
        if self._coordinator_peer is not None:
            self._coordinator_peer.send(message)

    @property
    def shown_epoch(self) -> int:
        return self.store.epoch if self._reads.shown is None else self._reads.shown

    @property
    def catalog_version(self) -> int:
        return self.tables.catalog_version

    def count_reads(self, count: int) -> None:
        self._reads.count += count

    # --- requests -------------------------------------------------------------------------------

    def handle(self, peer: Peer, request: int, message: Any) -> None:
        handler = self._handlers.get(type(message))
        if handler is None:
            log.warning("unexpected message %s", type(message).__name__)
            return
        if (self.epochs.in_doubt and type(message) in WAITING_FOR_CERTAINTY) or (
            not self.tables.is_known and type(message) in (Stage, RunStatements, ChangeViews)
        ):
            self._held.append((peer, request, message))
            return
        try:
            handler(peer, request, message)
        except StillFilling as still:
            still.fill.then(lambda error: peer.send(failure(error), request) if error else self.handle(peer, request, message))
        except Exception as error:
            if not isinstance(error, MillraceError):
                log.exception("%s failed", type(message).__name__)
            peer.send(failure(error), request)

    def _stage(self, peer: Peer, request: int, message: Stage) -> None:
        self.store.require_room(message)
        locked = self._locks.blocker(message)
        if locked is not None:
            peer.send(RowLocked(locked), request)
            return
        self._locks.staged(message)
        self._await_epoch(peer, request, message)

    def _run_statements(self, peer: Peer, request: int, message: RunStatements) -> None:
        if (stage := self.statements.stage(peer, request, message)) is not None:
            self._await_epoch(peer, request, stage)

    def _await_epoch(self, peer: Peer, request: int, message: Stage | StatementStage) -> None:
        self._waiting.setdefault(message.transaction, []).append((peer, request))
        if self._disk.is_waited_for or self.is_alone:
            self.run(self.epochs.stage(message))
        else:  # the epoch is over at once: what others have sent by now comes with it
            asyncio.get_running_loop().call_soon(self.run, self.epochs.stage(message))

    def _stage_part(self, peer: Peer, request: int, message: StagePart) -> None:
        self.store.require_room(message)
        locked = self._locks.blocker(message)
        if locked is not None:
            peer.send(RowLocked(locked), request)
            return
        self._large.begun(message.transaction, peer, request)
        effects = self.epochs.stage_part(message)
        self._locks.staged_part(message, self.epochs.large_values(message.transaction))
        self.run(effects)

    def _inquire(self, peer: Peer, request: int, message: Inquire) -> None:
        self._waiting.setdefault(message.transaction, []).append((peer, request))
        self.run(self.epochs.inquire(message))

    def _allocate(self, peer: Peer, request: int, message: Allocate) -> None:
        peer.send(Allocated(self.store.allocate(message.counter, message.count, message.floor, message.expected)), request)

    def _status(self, peer: Peer, request: int, message: AskStatus) -> None:
        memory = self.views.memory
        views = self.views.view_count, memory.total_bytes, memory.only_full_left
        facts = self._transactions, self._reads, self.tables.catalog_version, views, self.holds.longest_ms
        peer.send(shard_status(self.store, self.epochs, *facts), request)

    def enforce_limit(self) -> None:
        """Keep the views within their memory."""
        self.views.enforce_limit()
        self._large.check()
        self._feeds.check()

    def _stop(self, peer: Peer, request: int, message: Stop) -> None:
        peer.send(Acknowledged(), request)
        self.stopped.set()

    def _from_shard(self, peer: Peer, request: int, message: Any) -> None:
        if self.coordinator is None:
            raise InvalidStatement(Condition.UNKNOWN_ERROR, "not the coordinator")
        if isinstance(message, ShardJoined):
            self._shard_of_peer[peer] = message.shard
            self._peer_of_shard[message.shard] = peer
            self.views.shard_found(message.shard, peer)
        elif self._peer_of_shard.get(message.shard) is not peer:
            return
        if isinstance(message, OwnerWaits):
            self._locks.owner_waits(message)
            return
        if self.store.shadow is None or not isinstance(message, EpochWanted):  # else it could not be written down
            self.run(self._coordinated(self.coordinator, message))

    def _coordinated(self, coordinator: Coordinator, message: ToCoordinator) -> list[do.Send]:
        if isinstance(message, ViewsFailed):
            self.views.blame(message)
        return coordinator.handle(message)

    def _tell_shard(self, shard: int, message: Message) -> None:
        peer = self._peer_of_shard.get(shard) if self.shard == 0 else self._coordinator_peer
        if peer is not None:
            peer.send(message)

    def _peer_lost(self, peer: Peer) -> None:
        self._services.peer_lost(peer)
        self._locks.peer_lost(peer)
        self._reads.peer_lost(peer)
        for transaction in self._large.lost(peer):
            self.run(self.epochs.abandon(transaction))
            self._locks.answered(transaction, None)
        shard = self._shard_of_peer.pop(peer, None)
        if shard is not None and self._peer_of_shard.get(shard) is peer:
            del self._peer_of_shard[shard]
            self._locks.shard_lost(shard)
            assert self.coordinator is not None
            self.run(self.coordinator.lost(shard))
        self.views.peer_lost(peer)

    # --- effects --------------------------------------------------------------------------------

    def run(self, effects: list[do.ShardEffect] | list[do.Send]) -> None:
        """Carry effects out in order; those that they cause come after them."""
        self._effects.extend(effects)
        if self._carrying_out:
            return
        self._carrying_out = True
        try:
            while self._effects:
                self._carry_out(self._effects.popleft())
        finally:
            self._carrying_out = False
        self.tables.answer()
        self._questions.answer()
        if self._held and not self.epochs.in_doubt:
            held, self._held = self._held, []
            for peer, request, message in held:
                self.handle(peer, request, message)

    def _carry_out(self, effect: do.ShardEffect | do.Send) -> None:
        match effect:
            case do.Reply(transaction, outcome):
                self._transactions += 1
                for peer, request in self._waiting.pop(transaction, ()):
                    peer.send(outcome, request)
                self._locks.answered(transaction, outcome)
                self._large.answered(transaction)
            case do.PersistPart(part):
                self._large.persist(part)
            case do.DiscardParts(transaction):
                self._large.discard(transaction)
            case do.ReportToCoordinator(message):
                if self.coordinator is None:
                    self.tell_coordinator(message)
                else:
                    self._effects.extend(self._coordinated(self.coordinator, message))
            case do.Send(shard, message_):
                if shard == self.shard:
                    if isinstance(message_, EpochLanded):
                        self.views.landed()
                    self._effects.extend(self.epochs.handle(message_))
                elif shard in self._peer_of_shard:
                    self._peer_of_shard[shard].send(message_)
            case do.PersistPrepared(record):
                self._disk.write(self.store.persist_prepared, record, self._persisted)
            case do.PersistEpoch():
                is_followed = self.views.collect(effect)
                self._reads.shown = self.store.readable_epoch
                self._disk.write_epoch(self.store.begin_epoch, effect, self._persisted, is_followed)
            case do.ApplyEpoch():
                self.views.apply(effect)
            case do.StartViews(generation):
                self.views.start(generation)
            case do.OpenLater():
                self._opening.set()
            case do.DiscardPrepared(epoch):
                self.store.discard_prepared(epoch)
            case do.DiscardDecisions(epochs):
                self.store.discard_decisions(epochs)

    def _persisted(self, wait: Callable[[], None] = lambda: None) -> None:
        """What was to be written is, or is after `wait`."""
        self.views.stored(wait, self._followed)

    def _followed(self, changed: int) -> None:
        """The views show the epoch, or will when all shards have stored it."""
        self._reads.shown = None
        self.run(self.epochs.persisted())
        self._large.move()
        self.garbage.rows_changed(changed)

