"""The effects of shards and their coordinator: values that `backend.worker.worker` carries out, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dataflow.commit.epoch_messages import Outcome, Puts, StagePart, ToCoordinator, ToShard, TransactionId
from dataflow.commit.large_writes import LargeWrites


@dataclass(frozen=True, slots=True)
class Send:
    """To the shard with that number, or to the coordinator."""

    shard: int
    message: ToShard


@dataclass(frozen=True, slots=True)
class ReportToCoordinator:
    """To the coordinator."""

    message: ToCoordinator


@dataclass(frozen=True, slots=True)
class OpenLater:
    """Say `due` in a moment: writers are waited for that have just been answered."""


@dataclass(frozen=True, slots=True)
class Reply:
    """To whoever staged the transaction or inquired about it."""

    transaction: TransactionId
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class PreparedEpoch:
    """What a shard writes down before it says EpochPrepared: enough to commit without asking.

    `writes` and `new` belong to transactions of this shard alone; `spanning` ones apply if decided so.
    Nobody else can know the keys in `new`, so what order they are written in does not matter.
    """

    epoch: int
    writes: dict[bytes, bytes | None]
    transactions: list[TransactionId]
    spanning: list[tuple[TransactionId, dict[bytes, bytes | None]]]
    new: list[Puts] = field(default_factory=list)
    large: TransactionId | None = None
    """The large one among the transactions, if there is one; what it writes is in its parts."""
    results: dict[TransactionId, tuple[int, ...]] = field(default_factory=dict)
    """What the statements of transactions have given that the shard has run itself."""

    @property
    def write_count(self) -> int:
        """How many keys the shard's own transactions write, but for a large one."""
        return len(self.writes) + sum([len(puts.keys) for puts in self.new])


@dataclass(frozen=True, slots=True)
class PersistPrepared:
    """Write the record down, durably, then say `persisted`."""

    record: PreparedEpoch


@dataclass(frozen=True, slots=True)
class PersistEpoch:
    """Apply the epoch in one atomic write and remove its prepared record, then say `persisted`.

    `decision`, if any, is the coordinator's record for shards that ask.
    """

    epoch: int
    writes: dict[bytes, bytes | None]
    transactions: list[TransactionId]
    settled: dict[bytes, int]
    decision: tuple[TransactionId, ...] | None
    durable: bool
    absent: set[bytes] | frozenset[bytes] = frozenset()
    """Keys of `writes` that are known not to be there before the epoch."""
    new: Sequence[Puts] = ()
    """Keys besides `writes`, none of which was there before."""
    large: tuple[TransactionId, LargeWrites] | None = None
    """A large transaction of the epoch, after all others, whose parts are in the store already."""
    results: Mapping[TransactionId, tuple[int, ...]] = field(default_factory=dict)
    """As in `PreparedEpoch`."""

    @property
    def write_count(self) -> int:
        return len(self.writes) + sum([len(puts.keys) for puts in self.new])


@dataclass(frozen=True, slots=True)
class PersistPart:
    """Write a part of a large transaction down, some time before its epoch; say Done to its client then."""

    part: StagePart


@dataclass(frozen=True, slots=True)
class DiscardParts:
    """The large transaction was not committed and never will be: its parts can go (no need to wait)."""

    transaction: TransactionId


@dataclass(frozen=True, slots=True)
class ApplyEpoch:
    """Bring the views of this generation up to the epoch, which is stored, then say `applied`.

    If the shard's views are of another generation by now, say so at once.
    """

    epoch: int
    generation: int
    transitions: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StartViews:
    """Forget all views; those to come are of this generation."""

    generation: int


@dataclass(frozen=True, slots=True)
class DiscardPrepared:
    """The prepared epoch was not committed; its record can go (no need to wait)."""

    epoch: int


@dataclass(frozen=True, slots=True)
class DiscardDecisions:
    epochs: tuple[int, ...]


ShardEffect = (
    ReportToCoordinator
    | Reply
    | OpenLater
    | PersistPart
    | PersistPrepared
    | PersistEpoch
    | ApplyEpoch
    | StartViews
    | DiscardParts
    | DiscardPrepared
    | DiscardDecisions
)
