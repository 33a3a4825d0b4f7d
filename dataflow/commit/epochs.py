"""One shard's side of the epochs: stage, validate, prepare, close.

A transaction is a set of writes, each with the version it expects of its key. Transactions
wait here until the coordinator opens an epoch; then the shard decides each in order of
arrival against its stored state plus the epoch's earlier writes, so transactions of one
epoch are as if run one after the other (`dataflow.commit.epoch_opening`). A large transaction comes in
parts before it is staged, which are checked and written down while other epochs go on (`dataflow.commit.large_stage`).

The life of an epoch, on a shard that is not the coordinator's:

    OpenEpoch → validate → PersistPrepared → EpochPrepared → CloseEpoch → PersistEpoch → EpochClosed

Where views are part of an epoch (`CloseEpoch.generation`), all shards bring them up to it
together once it is stored, and writers wait for all of them:

    … PersistEpoch → ApplyEpoch → EpochClosed → EpochLanded

The coordinator's own shard (shard 0) needs no prepared record: its one durable write, made
after all others have prepared, holds its own writes and the decision for everyone. That
write is the commit point. With a single shard it is all there is, and nobody has to be asked (`Alone`): an epoch is
opened and closed in one step, once enough has been staged (`dataflow.commit.writer_pace`).

Invariants
- Writers hear `Committed` only after the commit point, after their shard applied it, and after
  every view that shows it does.
- A prepared epoch is never forgotten, and its decision never guessed: a shard that restarts
  with one asks the coordinator before it serves anything (`in_doubt`).
- An answer to `Inquire` is final: what was not committed then is withdrawn for good.

No sockets, disk, clock: events come in as method calls, effects go out as values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from dataflow.commit.alone import Alone
from dataflow.commit.epoch_effects import (
    ApplyEpoch,
    DiscardDecisions,
    DiscardParts,
    DiscardPrepared,
    OpenLater,
    PersistEpoch,
    PersistPart,
    PersistPrepared,
    PreparedEpoch,
    Reply,
    ReportToCoordinator,
    ShardEffect,
    StartViews,
)
from dataflow.commit.epoch_flight import CommittedState, DueViews, Flight, resumed
from dataflow.commit.epoch_messages import (
    CloseEpoch,
    Committed,
    EpochClosed,
    EpochDecided,
    EpochLanded,
    EpochPrepared,
    EpochWanted,
    ForgetDecisions,
    Inquire,
    OpenEpoch,
    ResetViews,
    ShardJoined,
    ShardWelcomed,
    Stage,
    StagePart,
    ToShard,
    TransactionId,
    TransactionWithdrawn,
    Withdrawn,
)
from dataflow.commit.epoch_opening import open_epoch
from dataflow.commit.large_stage import LargeStages
from dataflow.commit.statement_stage import StatementStage

WITHDRAWN_MAX = 100_000
"""How many withdrawn transactions are remembered, in case their stage is still under way."""


class ShardEpochs:
    """The state machine. Every method returns the effects to carry out, in order."""

    def __init__(
        self,
        shard: int,
        state: CommittedState,
        prepared: PreparedEpoch | None = None,
        views: DueViews | None = None,
        alone: Alone | None = None,
    ) -> None:
        """`alone` if there is no other shard."""
        self.shard = shard
        self.state = state
        self._views = views
        self.tables: dict[int, int] = {}
        self._staged: dict[TransactionId, Stage | StatementStage] = {}
        self._large = LargeStages(state)
        self._inquired: set[TransactionId] = set()
        self._withdrawn: OrderedDict[TransactionId, None] = OrderedDict()
        self._flight = resumed(prepared, state) if prepared else None
        self._restarted = prepared is not None
        self._welcome = False
        self._asked = False
        self._joins_later = False
        self._tables_waiting: dict[int, int] | None = None
        self._alone = alone

    @property
    def in_doubt(self) -> bool:
        """Whether the stored state may lack an epoch that clients were told of."""
        return self._restarted

    @property
    def idle(self) -> bool:
        return self._flight is None

    # --- clients ---------------------------------------------------------------------------

    def stage_part(self, part: StagePart) -> list[ShardEffect]:
        withdrawn = part.transaction in self._withdrawn
        refusal = Withdrawn() if withdrawn else self._large.add(part)
        if refusal is None:
            return [PersistPart(part)]
        return [DiscardParts(part.transaction), Reply(part.transaction, refusal)]

    def large_values(self, transaction: TransactionId) -> Mapping[bytes, bytes | None]:
        """What the parts of a large transaction that waits write until now."""
        return self._large.values_of(transaction)

    def stage(self, stage: Stage | StatementStage) -> list[ShardEffect]:
        if stage.transaction in self._withdrawn:
            return [Reply(stage.transaction, Withdrawn())]
        if isinstance(stage, Stage) and stage.parts and not self._large.is_whole(stage):
            return [*self._withdraw(stage.transaction), Reply(stage.transaction, Withdrawn())]
        self._staged[stage.transaction] = stage
        if not self._welcome:
            return []
        if self._alone is not None:
            return self._open_alone(self._alone)
        if len(stage.participants) > 1:
            return [ReportToCoordinator(EpochWanted(self.shard, False, ((stage.transaction, stage.participants),)))]
        return self.want_epoch()

    def _open_alone(self, alone: Alone, is_due: bool = False) -> list[ShardEffect]:
        """Decide and write an epoch with all that is staged, if that is enough, or it is due."""
        if self._flight is not None or not self._staged:
            return []
        if not is_due and not alone.is_enough(self._staged.values()):
            return [OpenLater()]
        epoch = alone.next_epoch()
        self._flight = open_epoch(OpenEpoch(epoch, ()), self._staged, self._large, self.tables, self.state)
        self._flight.prepared = True
        return self._close(CloseEpoch(epoch, commit=True))

    def due(self) -> list[ShardEffect]:
        """It is the moment of an OpenLater."""
        assert self._alone is not None
        self._alone.due()
        return self._open_alone(self._alone, is_due=True)

    def want_epoch(self) -> list[ShardEffect]:
        """Something on this shard waits for an epoch."""
        if self._asked or not self._welcome:
            return []
        self._asked = True
        return [ReportToCoordinator(EpochWanted(self.shard, True))]

    def inquire(self, inquire: Inquire) -> list[ShardEffect]:
        transaction = inquire.transaction
        if self._flight is not None and self._flight.concerns(transaction):
            self._inquired.add(transaction)
            return []
        epoch = self.state.epoch_of_transaction(transaction)
        if epoch is not None:
            return [Reply(transaction, Committed(epoch, self.state.results_of_transaction(transaction)))]
        return [*self._withdraw(transaction), Reply(transaction, Withdrawn())]

    def abandon(self, transaction: TransactionId) -> list[ShardEffect]:
        """Its client is gone: forget it unless the epoch in flight already holds it."""
        if self._flight is None or not self._flight.concerns(transaction):
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
        effects: list[ShardEffect] = [DiscardParts(transaction)] if self._large.forget(transaction) else []
        if stage is None or len(stage.participants) == 1 or not self._welcome:
            return effects
        return [*effects, ReportToCoordinator(TransactionWithdrawn(self.shard, transaction))]

    # --- the coordinator -------------------------------------------------------------------

    def coordinator_found(self) -> list[ShardEffect]:
        """A connection to the coordinator is up; say who is here and what is in doubt."""
        flight = self._flight
        if flight is None:
            return [ReportToCoordinator(ShardJoined(self.shard, None))]
        if flight.prepared and flight.closing is None:
            return [ReportToCoordinator(ShardJoined(self.shard, flight.record.epoch))]
        if flight.applying:
            self._joins_later = True
            assert flight.closing is not None
            return self._finish(flight, flight.closing)
        if flight.closing is None:
            # Its record is still being written; no coordinator can have counted on it.
            flight.closing = CloseEpoch(flight.record.epoch, commit=False)
        self._joins_later = True
        return []

    def coordinator_lost(self) -> None:
        self._welcome = False
        self._joins_later = False
        if self._flight is not None:
            self._flight.alone = True

    def handle(self, message: ToShard) -> list[ShardEffect]:
        match message:
            case OpenEpoch():
                return self._open(message)
            case CloseEpoch():
                return self._close(message)
            case ShardWelcomed():
                return self._welcomed(message)
            case EpochLanded(epoch):
                flight = self._flight
                assert flight is not None and flight.closing is not None and flight.record.epoch == epoch
                return self._finish(flight, flight.closing)
            case ResetViews(generation):
                return [StartViews(generation)]
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
        return [StartViews(message.generation), *self._want()]

    def _want(self) -> list[ShardEffect]:
        """Tell the coordinator of everything that waits (it may have forgotten)."""
        if self._alone is not None:
            return self._open_alone(self._alone)
        waits = self._views is not None and self._views.is_due(None)
        if not self._welcome or not (self._staged or waits):
            return []
        spanning = tuple((t, s.participants) for t, s in self._staged.items() if len(s.participants) > 1)
        self._asked = waits or len(spanning) < len(self._staged)
        return [ReportToCoordinator(EpochWanted(self.shard, self._asked, spanning))]

    def _open(self, message: OpenEpoch) -> list[ShardEffect]:
        assert self._flight is None, "an epoch is open already"
        self._asked = False
        flight = self._flight = open_epoch(message, self._staged, self._large, self.tables, self.state)
        if self._logs(flight.record):
            return [PersistPrepared(flight.record)]
        return self._prepared(flight)

    def _prepared(self, flight: Flight) -> list[ShardEffect]:
        flight.prepared = True
        record = flight.record
        accepted = tuple(transaction for transaction, _ in record.spanning)
        logged = self._logs(record)
        due = self._views is not None and self._views.is_due(record)
        return [ReportToCoordinator(EpochPrepared(self.shard, record.epoch, logged, accepted, tuple(flight.deferred), due))]

    def _logs(self, record: PreparedEpoch) -> bool:
        return self.shard != 0 and bool(record.transactions or record.spanning)

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
            return self._stored(flight, message)
        large = None
        if record.large is not None and record.large in transactions:
            assert flight.large is not None
            large = (record.large, flight.large)
        flight.storing = PersistEpoch(
            message.epoch,
            writes,
            transactions,
            flight.settled,
            message.committed if message.decision_needed else None,
            durable=self.shard == 0 or self._restarted,
            absent=flight.absent,
            new=record.new,
            large=large,
            results=record.results,
        )
        return [flight.storing]

    def persisted(self) -> list[ShardEffect]:
        """The last PersistPrepared or PersistEpoch is done."""
        flight = self._flight
        assert flight is not None
        if flight.closing is None:
            return self._prepared(flight)
        if not flight.closing.commit:
            flight.prepared = True
            return self._aborted(flight)
        return self._stored(flight, flight.closing)

    def _stored(self, flight: Flight, message: CloseEpoch) -> list[ShardEffect]:
        """The epoch is in the store: on to the views, if they are part of it."""
        if flight.storing is not None:
            self._large.written(flight.storing)
        if not message.generation and self._views is not None:
            self._views.passed(message.epoch)
        if not message.generation or flight.alone:
            return self._finish(flight, message)
        flight.applying = True
        decided: list[ShardEffect] = [ReportToCoordinator(EpochDecided(0, message.epoch))] if self.shard == 0 else []
        return [*decided, ApplyEpoch(message.epoch, message.generation, message.transitions)]

    def applied(self) -> list[ShardEffect]:
        """The views are at the epoch of the last ApplyEpoch, or gone."""
        assert self._flight is not None and self._flight.applying
        return [ReportToCoordinator(EpochClosed(self.shard, self._flight.record.epoch))]

    def _finish(self, flight: Flight, message: CloseEpoch) -> list[ShardEffect]:
        """The epoch is applied here: answer its writers."""
        effects: list[ShardEffect] = []
        answered: list[Stage | StatementStage] = []
        for transaction, outcome in flight.outcomes(message).items():
            if (stage := self._staged.pop(transaction, None)) is not None:
                answered.append(stage)
                if self._large.forget(transaction) and not isinstance(outcome, Committed):
                    effects.append(DiscardParts(transaction))
                effects.append(Reply(transaction, outcome))
        if self._restarted and flight.record.large is not None and (flight.storing is None or flight.storing.large is None):
            effects.append(DiscardParts(flight.record.large))
        self._flight = None
        if self._alone is not None:
            self._alone.finished(message.epoch, answered, self._staged.values())
        elif not flight.applying:
            effects.append(ReportToCoordinator(EpochClosed(self.shard, message.epoch)))
        return effects + self._after_flight()

    def _aborted(self, flight: Flight) -> list[ShardEffect]:
        """Nothing of the epoch happened; what was staged waits for the next one."""
        self._flight = None
        effects: list[ShardEffect] = []
        if self._restarted and flight.record.large is not None:
            effects.append(DiscardParts(flight.record.large))
        if self._logs(flight.record):
            effects.append(DiscardPrepared(flight.record.epoch))
        effects.append(ReportToCoordinator(EpochClosed(self.shard, flight.record.epoch)))
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
            effects.append(ReportToCoordinator(ShardJoined(self.shard, None)))
        return effects + self._want()
