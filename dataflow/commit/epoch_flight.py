"""The epoch that a shard has in flight, what it is decided on, and how.

A transaction is judged against the stored state and what earlier transactions of the same
epoch write; `dataflow.commit.epochs` says which are earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dataflow.commit.epoch_effects import PersistEpoch, PreparedEpoch
from dataflow.commit.epoch_messages import (
    ABSENT,
    ANY,
    Check,
    CloseEpoch,
    Committed,
    Outcome,
    Stage,
    StagePart,
    StaleSchema,
    Stored,
    TransactionId,
    VersionConflict,
    Withdrawn,
    Write,
    is_met,
)
from dataflow.commit.large_writes import LargeWrites


class CommittedState(Protocol):
    """The shard's stored state as of the last closed epoch."""

    def version_of(self, key: bytes) -> int:
        """The epoch that wrote the key, or ABSENT."""
        ...

    def are_absent(self, keys: Sequence[bytes]) -> bool:
        """Whether it is known at once that none of these keys is there."""
        ...

    def are_unchanged(self, start: bytes, stop: bytes, epoch: int) -> bool:
        """Whether it is known at once that no row of this range has changed since the epoch."""
        ...

    def get(self, key: bytes) -> Stored | None: ...

    def epoch_of_transaction(self, transaction: TransactionId) -> int | None:
        """The epoch in which it committed here, if it did."""
        ...

    def results_of_transaction(self, transaction: TransactionId) -> tuple[int, ...]:
        """What its statements have given, if the shard has run them."""
        ...

    def parts_of(self, transaction: TransactionId) -> LargeWrites:
        """What the stored parts of a large transaction write, which was prepared before a restart."""
        ...


class DueViews(Protocol):
    """What the shard's views need of epochs."""

    def is_due(self, record: PreparedEpoch | None) -> bool:
        """Whether the epoch changes a table that views are made of, or reads wait for any epoch."""
        ...

    def passed(self, epoch: int) -> None:
        """The epoch is stored, and was due on no shard; or there are no views, as a shard is missing."""
        ...


@dataclass(slots=True)
class Flight:
    """The epoch between OpenEpoch and EpochClosed, as this shard sees it."""

    record: PreparedEpoch
    verdicts: dict[TransactionId, Outcome] = field(default_factory=dict)
    deferred: list[TransactionId] = field(default_factory=list)
    settled: dict[bytes, int] = field(default_factory=dict)
    large: LargeWrites | None = None
    """What the large transaction of `record.large` writes."""
    absent: set[bytes] = field(default_factory=set)
    """Keys that transactions of this shard alone write, and that are not in the stored state."""
    prepared: bool = False
    closing: CloseEpoch | None = None
    storing: PersistEpoch | None = None
    applying: bool = False
    alone: bool = False
    """The coordinator was lost: the views will be forgotten, so nobody waits for them."""


    def concerns(self, transaction: TransactionId) -> bool:
        """Whether the epoch decides about it."""
        return (
            transaction in self.verdicts
            or transaction in self.record.transactions
            or any(transaction == spanning for spanning, _ in self.record.spanning)
        )

    def outcomes(self, closing: CloseEpoch) -> dict[TransactionId, Outcome]:
        """What became of each transaction of the epoch."""
        found = self.verdicts | dict.fromkeys(closing.committed, Committed(closing.epoch))
        for transaction in closing.refused:
            found.setdefault(transaction, Withdrawn())
        return found


def resumed(prepared: PreparedEpoch, state: CommittedState) -> Flight:
    """The epoch that was prepared before a restart."""
    large = None if prepared.large is None else state.parts_of(prepared.large)
    return Flight(prepared, prepared=True, large=large)


def refusal_of(
    stage: Stage,
    tables: Mapping[int, int],
    state: CommittedState,
    pending: Mapping[bytes, bytes | None],
    epoch: int,
) -> Outcome | None:
    """None if everything that a transaction expects holds, seen from after the epoch's earlier writes."""
    for table_id, version in stage.tables:
        if tables.get(table_id) != version:
            return StaleSchema(table_id)
    for start, stop, since in stage.unchanged:
        if not state.are_unchanged(start, stop, since) or any(start <= key < stop for key in pending):
            return VersionConflict(start, None)
    return conflict_of(stage, state, pending, epoch)


def conflict_of(
    part: Stage | StagePart, state: CommittedState, pending: Mapping[bytes, bytes | None], epoch: int
) -> VersionConflict | None:
    """A key that does not have the version expected, seen from after the epoch's earlier writes."""
    return check_conflict((part.checks, part.writes), state, pending, epoch) or _puts_conflict(part, state, pending, epoch)


def check_conflict(
    parts: Iterable[Iterable[Check | Write]],
    state: CommittedState,
    pending: Mapping[bytes, bytes | None],
    epoch: int,
) -> VersionConflict | None:
    version_of = state.version_of
    for expectations in parts:
        for expectation in expectations:
            expected = expectation[1]
            if expected == ANY:
                continue
            key = expectation[0]
            if key in pending:
                value = pending[key]
                if not is_met(expected, ABSENT if value is None else epoch):
                    return VersionConflict(key, None if value is None else (epoch, value))
            elif not is_met(expected, version_of(key)):
                return VersionConflict(key, state.get(key))
    return None


def _puts_conflict(
    part: Stage | StagePart, state: CommittedState, pending: Mapping[bytes, bytes | None], epoch: int
) -> VersionConflict | None:
    version_of = state.version_of
    for puts in part.puts:
        if puts.expected != ABSENT or (state.are_absent(puts.keys) and pending.keys().isdisjoint(puts.keys)):
            continue
        for key in puts.keys:
            value = pending.get(key)
            if value is not None:
                return VersionConflict(key, (epoch, value))
            if key not in pending and version_of(key) != ABSENT:
                return VersionConflict(key, state.get(key))
    return None
