"""One shard's side of the epochs: stage, validate, prepare, close.

A transaction is a set of writes, each with the version it expects of its key. Transactions
wait here until the coordinator opens an epoch; then the shard decides each in order of
arrival against its stored state plus the epoch's earlier writes, so transactions of one
epoch are as if run one after the other. Those that span shards come last, and one that
expects something of a key never shares an epoch with an earlier one that writes it: whether
that one commits depends on other shards, and nothing may be built on it before that is known.

The life of an epoch, on a shard that is not the coordinator's:

    OpenEpoch → validate → PersistPrepared → EpochPrepared → CloseEpoch → PersistEpoch → EpochClosed

The coordinator's own shard (shard 0) needs no prepared record: its one durable write, made
after all others have prepared, holds its own writes and the decision for everyone. That
write is the commit point. With a single shard it is all there is.

Invariants
- Writers hear `Committed` only after the commit point, and after their shard applied it.
- A prepared epoch is never forgotten, and its decision never guessed: a shard that restarts
  with one asks the coordinator before it serves anything (`in_doubt`).
- An answer to `Inquire` is final: what was not committed then is withdrawn for good.

No sockets, disk, clock: events come in as method calls, effects go out as values.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

from dataflow.epoch_messages import (
    ABSENT,
    ANY,
    CloseEpoch,
    Committed,
    Conflict,
    DiscardDecisions,
    DiscardPrepared,
    EpochClosed,
    EpochPrepared,
    EpochWanted,
    ForgetDecisions,
    Inquire,
    OpenEpoch,
    Outcome,
    PersistEpoch,
    PersistPrepared,
    PreparedEpoch,
    Reply,
    Report,
    ShardEffect,
    ShardJoined,
    ShardWelcomed,
    Stage,
    StaleSchema,
    Stored,
    ToShard,
    TransactionId,
    TransactionWithdrawn,
    Withdrawn,
    is_met,
)

EPOCH_WRITES_MAX = 50_000
"""An epoch takes no further transactions of its own shard beyond this many writes."""
WITHDRAWN_MAX = 100_000
"""How many withdrawn transactions are remembered, in case their stage is still under way."""


class CommittedState(Protocol):
    """The shard's stored state as of the last closed epoch."""

    def version_of(self, key: bytes) -> int:
        """The epoch that wrote the key, or ABSENT."""
        ...

    def get(self, key: bytes) -> Stored | None: ...

    def epoch_of_transaction(self, transaction: TransactionId) -> int | None:
        """The epoch in which it committed here, if it did."""
        ...


@dataclass(slots=True)
class _Flight:
    """The epoch between OpenEpoch and EpochClosed, as this shard sees it."""

    record: PreparedEpoch
    verdicts: dict[TransactionId, Outcome] = field(default_factory=dict)
    deferred: list[TransactionId] = field(default_factory=list)
    settled: dict[bytes, int] = field(default_factory=dict)
    prepared: bool = False
    closing: CloseEpoch | None = None


class ShardEpochs:
    """The state machine. Every method returns the effects to carry out, in order."""

    def __init__(self, shard: int, state: CommittedState, prepared: PreparedEpoch | None = None) -> None:
        self.shard = shard
        self.state = state
        self.tables: dict[int, int] = {}
        self._staged: dict[TransactionId, Stage] = {}
        self._inquired: set[TransactionId] = set()
        self._withdrawn: OrderedDict[TransactionId, None] = OrderedDict()
        self._flight = _Flight(prepared, prepared=True) if prepared else None
        self._restarted = prepared is not None
        self._welcome = False
        self._asked = False
        self._joins_later = False
        self._tables_waiting: dict[int, int] | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether the stored state may lack an epoch that clients were told of."""
        return self._restarted

    @property
    def idle(self) -> bool:
        return self._flight is None

    # --- clients ---------------------------------------------------------------------------

    def stage(self, stage: Stage) -> list[ShardEffect]:
        if stage.transaction in self._withdrawn:
            return [Reply(stage.transaction, Withdrawn())]
        self._staged[stage.transaction] = stage
        if not self._welcome:
            return []
        if len(stage.participants) > 1:
            return [Report(EpochWanted(self.shard, False, ((stage.transaction, stage.participants),)))]
        if self._asked:
            return []
        self._asked = True
        return [Report(EpochWanted(self.shard, True))]

    def inquire(self, inquire: Inquire) -> list[ShardEffect]:
        transaction = inquire.transaction
        if self._flight is not None and self._concerns_flight(transaction):
            self._inquired.add(transaction)
            return []
        epoch = self.state.epoch_of_transaction(transaction)
        if epoch is not None:
            return [Reply(transaction, Committed(epoch))]
        return [*self._withdraw(transaction), Reply(transaction, Withdrawn())]

    def abandon(self, transaction: TransactionId) -> list[ShardEffect]:
        """Its client is gone: forget it unless the epoch in flight already holds it."""
        if self._flight is None or not self._concerns_flight(transaction):
            return self._withdraw(transaction)
        return []

    def set_tables(self, versions: dict[int, int]) -> bool:
        """Take over all table versions; True if in force now, else when the epoch in flight has closed."""
        if self._flight is not None:
            self._tables_waiting = versions
            return False
        self.tables = versions
        return True

    def _withdraw(self, transaction: TransactionId) -> list[ShardEffect]:
        stage = self._staged.pop(transaction, None)
        self._withdrawn[transaction] = None
        if len(self._withdrawn) > WITHDRAWN_MAX:
            self._withdrawn.popitem(last=False)
        if stage is None or len(stage.participants) == 1 or not self._welcome:
            return []
        return [Report(TransactionWithdrawn(self.shard, transaction))]

    def _concerns_flight(self, transaction: TransactionId) -> bool:
        assert self._flight is not None
        record = self._flight.record
        return (
            transaction in self._flight.verdicts
            or transaction in record.transactions
            or any(transaction == spanning for spanning, _ in record.spanning)
        )

    # --- the coordinator -------------------------------------------------------------------

    def coordinator_found(self) -> list[ShardEffect]:
        """A connection to the coordinator is up; say who is here and what is in doubt."""
        flight = self._flight
        if flight is None:
            return [Report(ShardJoined(self.shard, None))]
        if flight.prepared and flight.closing is None:
            return [Report(ShardJoined(self.shard, flight.record.epoch))]
        if flight.closing is None:
            # Its record is still being written; no coordinator can have counted on it.
            flight.closing = CloseEpoch(flight.record.epoch, commit=False)
        self._joins_later = True
        return []

    def coordinator_lost(self) -> None:
        self._welcome = False
        self._joins_later = False

    def handle(self, message: ToShard) -> list[ShardEffect]:
        match message:
            case OpenEpoch():
                return self._open(message)
            case CloseEpoch():
                return self._close(message)
            case ShardWelcomed():
                return self._welcomed(message)
            case ForgetDecisions():
                return [DiscardDecisions(message.epochs)]

    def _welcomed(self, message: ShardWelcomed) -> list[ShardEffect]:
        if self._flight is not None:
            epoch = self._flight.record.epoch
            self._joins_later = True
            if message.committed is None:
                return self._close(CloseEpoch(epoch, commit=False))
            refused = tuple(t for t, _ in self._flight.record.spanning if t not in message.committed)
            return self._close(CloseEpoch(epoch, True, message.committed, refused))
        self._welcome = True
        self._restarted = False
        return self._want()

    def _want(self) -> list[ShardEffect]:
        """Tell the coordinator of everything that waits (it may have forgotten)."""
        if not self._welcome or not self._staged:
            return []
        spanning = tuple((t, s.participants) for t, s in self._staged.items() if len(s.participants) > 1)
        self._asked = len(spanning) < len(self._staged)
        return [Report(EpochWanted(self.shard, self._asked, spanning))]

    def _open(self, message: OpenEpoch) -> list[ShardEffect]:
        assert self._flight is None, "an epoch is open already"
        self._asked = False
        record = PreparedEpoch(message.epoch, {}, [], [])
        flight = self._flight = _Flight(record)
        for transaction, stage in self._staged.items():
            if len(record.writes) > EPOCH_WRITES_MAX:
                break
            if len(stage.participants) == 1:
                refusal = self._validate(stage, record.writes)
                if refusal is None:
                    record.transactions.append(transaction)
                    for key, _, value in stage.writes:
                        record.writes[key] = value
                flight.verdicts[transaction] = refusal or Committed(message.epoch)
                self._settle(flight, stage)
        written: set[bytes] = set()
        for transaction in message.spanning:
            spanning = self._staged.get(transaction)
            if spanning is None:
                continue
            expecting = (each[0] for part in (spanning.writes, spanning.checks) for each in part if each[1] != ANY)
            if not written.isdisjoint(expecting):
                flight.deferred.append(transaction)
                continue
            refusal = self._validate(spanning, record.writes)
            if refusal is None:
                written.update(write[0] for write in spanning.writes)
                record.spanning.append((transaction, {key: value for key, _, value in spanning.writes}))
                self._settle(flight, spanning)
            else:
                flight.verdicts[transaction] = refusal
        if self._logs(record):
            return [PersistPrepared(record)]
        return self._prepared(flight)

    def _prepared(self, flight: _Flight) -> list[ShardEffect]:
        flight.prepared = True
        record = flight.record
        accepted = tuple(transaction for transaction, _ in record.spanning)
        logged = self._logs(record)
        return [Report(EpochPrepared(self.shard, record.epoch, logged, accepted, tuple(flight.deferred)))]

    def _logs(self, record: PreparedEpoch) -> bool:
        return self.shard != 0 and bool(record.transactions or record.spanning)

    def _settle(self, flight: _Flight, stage: Stage) -> None:
        client = stage.transaction[0]
        flight.settled[client] = max(stage.settled, flight.settled.get(client, 0))

    def _validate(self, stage: Stage, pending: dict[bytes, bytes | None]) -> Outcome | None:
        """None if every expectation holds, seen from after the epoch's earlier writes."""
        tables = self.tables
        for table_id, version in stage.tables:
            if tables.get(table_id) != version:
                return StaleSchema(table_id)
        version_of = self.state.version_of
        epoch = self._flight.record.epoch if self._flight else 0
        for expectations in (stage.checks, stage.writes):
            for expectation in expectations:
                expected = expectation[1]
                if expected == ANY:
                    continue
                key = expectation[0]
                if key in pending:
                    value = pending[key]
                    if not is_met(expected, ABSENT if value is None else epoch):
                        return Conflict(key, None if value is None else (epoch, value))
                elif not is_met(expected, version_of(key)):
                    return Conflict(key, self.state.get(key))
        return None

    def _close(self, message: CloseEpoch) -> list[ShardEffect]:
        flight = self._flight
        assert flight is not None and flight.record.epoch == message.epoch, (
            "closing an epoch that is not open"
        )
        flight.closing = message
        if not message.commit:
            if not flight.prepared:
                return []
            return self._aborted(flight)
        record = flight.record
        writes = dict(record.writes) if record.spanning else record.writes
        transactions = list(record.transactions)
        for transaction, spanning_writes in record.spanning:
            if transaction in message.committed:
                writes.update(spanning_writes)
                transactions.append(transaction)
        if not transactions and not message.decision_needed and not self._logs(record):
            return self._finish(flight, message)
        return [
            PersistEpoch(
                message.epoch,
                writes,
                transactions,
                flight.settled,
                message.committed if message.decision_needed else None,
                durable=self.shard == 0 or self._restarted,
            )
        ]

    def persisted(self) -> list[ShardEffect]:
        """The last PersistPrepared or PersistEpoch is done."""
        flight = self._flight
        assert flight is not None
        if flight.closing is None:
            return self._prepared(flight)
        if not flight.closing.commit:
            flight.prepared = True
            return self._aborted(flight)
        return self._finish(flight, flight.closing)

    def _finish(self, flight: _Flight, message: CloseEpoch) -> list[ShardEffect]:
        """The epoch is applied here: answer its writers."""
        effects: list[ShardEffect] = []
        for transaction, verdict in flight.verdicts.items():
            if transaction in self._staged:
                del self._staged[transaction]
                effects.append(Reply(transaction, verdict))
        committed = Committed(message.epoch)
        for transaction in message.committed:
            if self._staged.pop(transaction, None) is not None:
                effects.append(Reply(transaction, committed))
        for transaction in message.refused:
            if self._staged.pop(transaction, None) is not None:
                effects.append(Reply(transaction, Withdrawn()))
        self._flight = None
        effects.append(Report(EpochClosed(self.shard, message.epoch)))
        return effects + self._after_flight()

    def _aborted(self, flight: _Flight) -> list[ShardEffect]:
        """Nothing of the epoch happened; what was staged waits for the next one."""
        self._flight = None
        effects: list[ShardEffect] = []
        if self._logs(flight.record):
            effects.append(DiscardPrepared(flight.record.epoch))
        effects.append(Report(EpochClosed(self.shard, flight.record.epoch)))
        return effects + self._after_flight()

    def _after_flight(self) -> list[ShardEffect]:
        effects: list[ShardEffect] = []
        self._restarted = False
        if self._tables_waiting is not None:
            self.tables, self._tables_waiting = self._tables_waiting, None
        for transaction in sorted(self._inquired):
            effects += self.inquire(Inquire(transaction))
        self._inquired.clear()
        if self._joins_later:
            self._joins_later = False
            effects.append(Report(ShardJoined(self.shard, None)))
        return effects + self._want()
