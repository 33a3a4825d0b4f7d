"""Opens and decides the global epochs; lives beside shard 0, whose durable write is the commit point.

One epoch is in flight at a time:

    PREPARING  every live shard validates and writes down what it would commit
    DECIDING   shard 0 commits, durably, together with the decision record
    CLOSING    the other shards apply it, views included; when all have, the next epoch may open

An epoch opens as soon as something waits and the previous one is done, so it holds one
transaction when the system is idle and thousands under load. A shard that is lost while
PREPARING aborts the epoch: nothing happened, everything stays staged, and the next epoch
goes on without it. Once decided, an epoch is committed whoever is lost; a shard that comes
back asks (`ShardJoined`) and is told. An epoch without a decision record was not committed.

Views live while all shards do. Shards bring them up to an epoch together, if it changes
something that they are made of (`EpochPrepared.due`) or transitions wait. When a shard is lost,
or cannot go on with its views, all views are forgotten; those to come are of a new generation.

A decision is kept until every shard that wrote the epoch down has shown, by a later durable
write, that it can't ask any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from dataflow.commit.epoch_effects import Send
from dataflow.commit.epoch_messages import (
    CloseEpoch,
    EpochClosed,
    EpochDecided,
    EpochLanded,
    EpochPrepared,
    EpochWanted,
    ForgetDecisions,
    OpenEpoch,
    ResetViews,
    ShardJoined,
    ShardWelcomed,
    ToCoordinator,
    TransactionId,
    TransactionWithdrawn,
    ViewsFailed,
)

SPANNING_PER_EPOCH_MAX = 10_000


class Phase(Enum):
    PREPARING = "preparing"
    DECIDING = "deciding"
    CLOSING = "closing"


@dataclass(slots=True)
class _Flight:
    epoch: int
    spanning: tuple[TransactionId, ...]
    shards: set[int]
    waiting: set[int]
    phase: Phase = Phase.PREPARING
    logged: set[int] = field(default_factory=set)
    accepted: dict[TransactionId, set[int]] = field(default_factory=dict)
    deferred: dict[TransactionId, set[int]] = field(default_factory=dict)
    committed: tuple[TransactionId, ...] = ()
    refused: tuple[TransactionId, ...] = ()
    due: bool = False
    generation: int = 0
    transitions: tuple[bytes, ...] = ()


@dataclass(slots=True)
class _Spanning:
    participants: tuple[int, ...]
    reported: set[int]


@dataclass(slots=True)
class _Decision:
    committed: tuple[TransactionId, ...]
    unconfirmed: set[int]


class Coordinator:
    """The state machine. Every method returns the messages to send, in order."""

    def __init__(
        self,
        shard_count: int,
        next_epoch: Callable[[], int],
        decisions: dict[int, tuple[TransactionId, ...]],
        closed_epoch: int = 0,
    ) -> None:
        self._next_epoch = next_epoch
        self._shard_count = shard_count
        self._generation = next_epoch() if shard_count > 1 else 0
        self._transitions: list[bytes] = []
        self._live: set[int] = set()
        self._wanted = False
        self._spanning: dict[TransactionId, _Spanning] = {}
        self._decisions = {
            epoch: _Decision(committed, set(range(1, shard_count))) for epoch, committed in decisions.items()
        }
        self._flight: _Flight | None = None
        self._joining: list[ShardJoined] = []
        self._closed_epoch = closed_epoch

    def handle(self, message: ToCoordinator) -> list[Send]:
        match message:
            case EpochWanted():
                return self._want(message)
            case TransactionWithdrawn():
                self._unreport(message.transaction, message.shard)
                return []
            case EpochPrepared():
                return self._prepared(message)
            case EpochDecided(epoch=epoch):
                assert self._flight is not None and self._flight.epoch == epoch
                return self._decided(self._flight)
            case EpochClosed():
                return self._closed(message)
            case ViewsFailed(generation=generation):
                return self._reset_views() if generation == self._generation else []
            case ShardJoined():
                return self._joined(message)

    @property
    def readable_epoch(self) -> int | None:
        """An epoch that every shard has applied and that holds everything acknowledged so far.

        None for the moment in which some shards have applied, and acknowledged, what others
        have yet to apply.
        """
        closing = self._flight is not None and self._flight.phase is Phase.CLOSING
        return None if closing else self._closed_epoch

    def closed_alone(self, epoch: int) -> None:
        """The only shard has opened and closed an epoch by itself."""
        self._closed_epoch = epoch

    @property
    def is_whole(self) -> bool:
        """Whether all shards are here, so that there can be views."""
        return len(self._live) == self._shard_count

    def change_views(self, transition: bytes) -> list[Send]:
        """Have all shards make this transition in the next epoch. Only while the cluster `is_whole`."""
        assert self.is_whole
        self._transitions.append(transition)
        return self._open()

    def _reset_views(self) -> list[Send]:
        self._generation = self._next_epoch()
        self._transitions.clear()
        return [Send(shard, ResetViews(self._generation)) for shard in sorted(self._live)]

    def lost(self, shard: int) -> list[Send]:
        """The connection to a shard is gone, and with it what was staged there."""
        assert shard != 0, "the coordinator lives with shard 0"
        self._live.discard(shard)
        self._joining = [joined for joined in self._joining if joined.shard != shard]
        for transaction in list(self._spanning):
            self._unreport(transaction, shard)
        sends = self._reset_views()
        flight = self._flight
        if flight is None or shard not in flight.shards:
            return sends
        flight.shards.discard(shard)
        flight.waiting.discard(shard)
        if flight.phase is Phase.PREPARING:
            return sends + self._abort(flight)
        if flight.phase is Phase.CLOSING and not flight.waiting:
            return sends + self._landed(flight)
        return sends

    def _unreport(self, transaction: TransactionId, shard: int) -> None:
        spanning = self._spanning.get(transaction)
        if spanning is not None:
            spanning.reported.discard(shard)
            if not spanning.reported and (self._flight is None or transaction not in self._flight.spanning):
                del self._spanning[transaction]

    def _want(self, message: EpochWanted) -> list[Send]:
        self._wanted |= message.own
        for transaction, participants in message.spanning:
            spanning = self._spanning.setdefault(transaction, _Spanning(participants, set()))
            spanning.reported.add(message.shard)
        return self._open()

    def _open(self) -> list[Send]:
        if self._flight is not None or 0 not in self._live:
            return []
        ready: list[TransactionId] = []
        for transaction, spanning in self._spanning.items():
            if spanning.reported.issuperset(spanning.participants) and len(ready) < SPANNING_PER_EPOCH_MAX:
                ready.append(transaction)
        if not self._wanted and not ready and not self._transitions:
            return []
        self._wanted = False
        shards = set(self._live)
        flight = self._flight = _Flight(self._next_epoch(), tuple(ready), shards, set(shards))
        return [Send(shard, OpenEpoch(flight.epoch, flight.spanning)) for shard in sorted(shards)]

    def _prepared(self, message: EpochPrepared) -> list[Send]:
        forgotten = self._confirm(message.shard, message.epoch) if message.logged else []
        flight = self._flight
        if flight is None or flight.epoch != message.epoch or flight.phase is not Phase.PREPARING:
            return forgotten
        for transaction in message.accepted:
            flight.accepted.setdefault(transaction, set()).add(message.shard)
        for transaction in message.deferred:
            flight.deferred.setdefault(transaction, set()).add(message.shard)
        if message.logged:
            flight.logged.add(message.shard)
        flight.due |= message.due
        flight.waiting.discard(message.shard)
        return forgotten + (self._decide(flight) if not flight.waiting else [])

    def _decide(self, flight: _Flight) -> list[Send]:
        committed, refused = [], []
        for transaction in flight.spanning:
            missing = set(self._spanning[transaction].participants) - flight.accepted.get(transaction, set())
            if not missing:
                committed.append(transaction)
            elif not missing <= flight.deferred.get(transaction, set()):
                refused.append(transaction)
        flight.committed, flight.refused = tuple(committed), tuple(refused)
        if (flight.due or self._transitions) and len(flight.shards) == self._shard_count:
            flight.generation = self._generation
            flight.transitions, self._transitions = tuple(self._transitions), []
        flight.phase = Phase.DECIDING
        return [Send(0, self._close_message(flight, commit=True))]

    def _close_message(self, flight: _Flight, commit: bool) -> CloseEpoch:
        return CloseEpoch(
            flight.epoch,
            commit,
            flight.committed,
            flight.refused,
            bool(flight.logged),
            flight.generation,
            flight.transitions,
        )

    def _abort(self, flight: _Flight) -> list[Send]:
        flight.phase = Phase.CLOSING
        flight.waiting = set(flight.shards)
        return [Send(shard, self._close_message(flight, commit=False)) for shard in sorted(flight.shards)]

    def _closed(self, message: EpochClosed) -> list[Send]:
        flight = self._flight
        if flight is None or flight.epoch != message.epoch:
            return []
        if flight.phase is Phase.DECIDING:
            assert message.shard == 0, "only shard 0 closes an epoch before the decision"
            return self._decided(flight)
        flight.waiting.discard(message.shard)
        return self._landed(flight) if not flight.waiting else []

    def _decided(self, flight: _Flight) -> list[Send]:
        """The commit point is passed: tell the others."""
        if flight.logged:
            self._decisions[flight.epoch] = _Decision(flight.committed, set(flight.logged))
        for transaction in flight.committed + flight.refused:
            self._spanning.pop(transaction, None)
        flight.phase = Phase.CLOSING
        flight.waiting = flight.shards - {0}
        sends = [Send(shard, self._close_message(flight, commit=True)) for shard in sorted(flight.waiting)]
        if flight.generation:
            flight.waiting.add(0)
        return sends if flight.waiting else sends + self._landed(flight)

    def _landed(self, flight: _Flight) -> list[Send]:
        self._flight = None
        self._closed_epoch = flight.epoch
        landed = flight.shards if flight.generation else ()
        sends = [Send(shard, EpochLanded(flight.epoch)) for shard in sorted(landed)]
        joining, self._joining = self._joining, []
        for joined in joining:
            sends += self._joined(joined)
        return sends + self._open()

    def _joined(self, message: ShardJoined) -> list[Send]:
        if message.shard in self._live:
            # It came back before its old connection was seen to end.
            return self.lost(message.shard) + self._joined(message)
        flight = self._flight
        if flight is not None and flight.epoch == message.prepared:
            self._joining.append(message)
            return []
        confirmed = self._confirm(message.shard, message.prepared)
        if message.prepared is not None:
            # It joins anew, with nothing in doubt, once it has carried the decision out.
            decision = self._decisions.get(message.prepared)
            return [*confirmed, Send(message.shard, ShardWelcomed(decision.committed if decision else None))]
        self._live.add(message.shard)
        return [*confirmed, Send(message.shard, ShardWelcomed(None, self._generation)), *self._open()]

    def _confirm(self, shard: int, before: int | None) -> list[Send]:
        """The shard will not ask again about epochs below `before` (None: about any)."""
        forgotten = []
        for epoch, decision in self._decisions.items():
            if before is None or epoch < before:
                decision.unconfirmed.discard(shard)
                if not decision.unconfirmed:
                    forgotten.append(epoch)
        return self._forget(forgotten)

    def _forget(self, epochs: Iterable[int]) -> list[Send]:
        gone = tuple(epochs)
        for epoch in gone:
            del self._decisions[epoch]
        return [Send(0, ForgetDecisions(gone))] if gone else []
