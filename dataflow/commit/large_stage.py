"""Large transactions that wait on a shard for their epoch, or for the rest of their parts.

A large transaction comes in parts, each of which is small, so that nobody waits for the whole: a part is looked
at when it comes, between other epochs. What is expected of a key is checked then, and once more in the
transaction's own epoch for the keys that others have written meanwhile: those are `doubtful`. So that epoch has
little to do, however much the transaction writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_flight import CommittedState, check_conflict, conflict_of
from dataflow.commit.epoch_messages import (
    ANY,
    NEW,
    Check,
    Outcome,
    Stage,
    StagePart,
    TransactionId,
    VersionConflict,
    Withdrawn,
)
from dataflow.commit.large_writes import LargeWrites


class LargeStage:
    """A large transaction that waits for its epoch, or for the rest of its parts."""

    def __init__(self) -> None:
        self.writes = LargeWrites()
        self.parts = 0
        self.expected: dict[bytes, int] = {}
        self.doubtful: set[bytes] = set()
        """Keys that something is expected of and that were written after that was checked."""

    def add(self, part: StagePart) -> None:
        """A part of which all that is expected holds now."""
        self.parts += 1
        self.writes.add(part.pairs())
        self.expected.update((key, expected) for key, expected in part.expectations() if expected not in (ANY, NEW))

    def written_by_others(self, keys: Collection[bytes]) -> None:
        """An epoch has written these keys."""
        if len(keys) < len(self.expected):
            self.doubtful.update(key for key in keys if key in self.expected)
        else:
            self.doubtful.update(key for key in self.expected if key in keys)

    def doubts(self, pending: Iterable[bytes]) -> list[Check]:
        """What has to hold still, given what earlier transactions of the same epoch write."""
        keys = {*self.doubtful, *(key for key in pending if key in self.expected)}
        return [(key, self.expected[key]) for key in keys]


class LargeStages:
    """Those of one shard, whose `state` they are checked against."""

    def __init__(self, state: CommittedState) -> None:
        self._state = state
        self._stages: dict[TransactionId, LargeStage] = {}

    def add(self, part: StagePart) -> Outcome | None:
        """One more part. If it is refused, with it the transaction is forgotten."""
        stage = self._stages.get(part.transaction)
        if stage is None and part.number == 0:
            stage = self._stages[part.transaction] = LargeStage()
        if stage is None or stage.parts != part.number:
            self.forget(part.transaction)
            return Withdrawn()
        conflict = conflict_of(part, self._state, {}, 0)
        if conflict is not None:
            self.forget(part.transaction)
        else:
            stage.add(part)
        return conflict

    def is_whole(self, stage: Stage) -> bool:
        """Whether all of its parts are here."""
        found = self._stages.get(stage.transaction)
        return found is not None and found.parts == stage.parts

    def writes_of(self, transaction: TransactionId) -> LargeWrites:
        return self._stages[transaction].writes

    def values_of(self, transaction: TransactionId) -> Mapping[bytes, bytes | None]:
        stage = self._stages.get(transaction)
        return {} if stage is None else stage.writes.values

    def conflict(
        self, transaction: TransactionId, pending: Mapping[bytes, bytes | None], epoch: int
    ) -> VersionConflict | None:
        """What does not hold any more of what it expects, seen from after the epoch's earlier writes."""
        doubts = self._stages[transaction].doubts(pending)
        return check_conflict((doubts,), self._state, pending, epoch)

    def written(self, epoch: PersistEpoch) -> None:
        """The epoch is stored."""
        for transaction, stage in self._stages.items():
            stage.written_by_others(epoch.writes.keys())
            if epoch.large is not None and epoch.large[0] != transaction:
                stage.written_by_others(epoch.large[1].values.keys())

    def forget(self, transaction: TransactionId) -> bool:
        """Whether there was something to forget."""
        return self._stages.pop(transaction, None) is not None
