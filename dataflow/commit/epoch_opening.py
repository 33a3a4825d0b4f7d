"""The choice and order of the waiting transactions that an epoch takes.

Transactions of this shard alone come first, in order of arrival, a large one after all others. Those that span
shards come last, and one that expects something of a key never shares an epoch with an earlier one that writes
it: whether that one commits depends on other shards, and nothing may be built on it before that is known.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace

from dataflow.commit.epoch_effects import PreparedEpoch
from dataflow.commit.epoch_flight import CommittedState, Flight, refusal_of
from dataflow.commit.epoch_messages import Committed, OpenEpoch, Outcome, Stage, TransactionId
from dataflow.commit.large_stage import LargeStages
from dataflow.commit.statement_stage import ELSEWHERE, StatementStage

EPOCH_WRITES_MAX = 2_000
"""An epoch takes no further transactions of its own shard beyond this many writes."""

Pending = Mapping[bytes, bytes | None]


def open_epoch(
    message: OpenEpoch,
    staged: Mapping[TransactionId, Stage | StatementStage],
    large: LargeStages,
    tables: Mapping[int, int],
    state: CommittedState,
) -> Flight:
    """The epoch with everything decided that this shard can decide."""
    return _Opening(message, staged, large, tables, state).flight


class _Opening:
    def __init__(
        self,
        message: OpenEpoch,
        staged: Mapping[TransactionId, Stage | StatementStage],
        large: LargeStages,
        tables: Mapping[int, int],
        state: CommittedState,
    ) -> None:
        self._large = large
        self._tables = tables
        self._state = state
        self.flight = Flight(PreparedEpoch(message.epoch, {}, [], []))
        own = [stage for stage in staged.values() if len(stage.participants) == 1]
        self._take_own([stage for stage in own if not stage.parts])
        large_ones = [stage for stage in own if isinstance(stage, Stage) and stage.parts]
        spanning = [
            stage for each in message.spanning if (stage := staged.get(each)) is not None and isinstance(stage, Stage)
        ]
        if not any(stage.parts for stage in spanning):
            self._take_own_large(large_ones)
        self._take_spanning(spanning)

    def _take_own(self, stages: list[Stage | StatementStage]) -> None:
        flight, record = self.flight, self.flight.record
        for stage in stages:
            if record.write_count > EPOCH_WRITES_MAX:
                break
            if isinstance(stage, StatementStage):
                self._run(stage)
                continue
            refusal = self._refusal(stage, record.writes)
            if refusal is None:
                record.transactions.append(stage.transaction)
                absent = set(stage.absent())
                flight.absent |= absent.difference(record.writes) if record.writes else absent
                stage.write_into(record.writes, record.new)
            flight.verdicts[stage.transaction] = refusal or Committed(record.epoch)
            self._settle(stage)

    def _run(self, stage: StatementStage) -> None:
        flight, record = self.flight, self.flight.record
        results = [ELSEWHERE] * stage.count
        if self._tables.get(stage.table) == stage.version:
            results, stage.keys = stage.run(record.writes, flight.absent)
        found = Committed(record.epoch, tuple(results))
        if stage.keys:  # else there is nothing that its client could ask for later
            record.transactions.append(stage.transaction)
            record.results[stage.transaction] = found.results
        flight.verdicts[stage.transaction] = found
        self._settle(stage)

    def _take_own_large(self, stages: list[Stage]) -> None:
        """The first of them: an epoch has one large transaction at most."""
        for stage in stages[:1]:
            record = self.flight.record
            refusal = self._refusal(stage, record.writes)
            if refusal is None:
                record.transactions.append(stage.transaction)
                self._take_large(stage)
            self.flight.verdicts[stage.transaction] = refusal or Committed(record.epoch)
            self._settle(stage)

    def _take_spanning(self, stages: list[Stage]) -> None:
        """A large one is the only one of these in its epoch."""
        flight = self.flight
        pending: Pending = flight.record.writes
        if flight.large is not None:
            pending = ChainMap(flight.large.values, flight.record.writes)
        written: set[bytes] = set()
        for stage in stages:
            taken = flight.record.spanning
            is_after_large = bool(taken) and taken[0][0] == flight.record.large
            if is_after_large or (stage.parts and taken) or stage.expects_of(written):
                flight.deferred.append(stage.transaction)
                continue
            refusal = self._refusal(stage, pending)
            if refusal is not None:
                flight.verdicts[stage.transaction] = refusal
                continue
            writes: dict[bytes, bytes | None] = {}
            stage.write_into(writes)
            written.update(writes)
            taken.append((stage.transaction, writes))
            if stage.parts:
                self._take_large(stage)
            self._settle(stage)

    def _take_large(self, stage: Stage) -> None:
        self.flight.record = replace(self.flight.record, large=stage.transaction)
        self.flight.large = self._large.writes_of(stage.transaction)

    def _settle(self, stage: Stage | StatementStage) -> None:
        client, settled = stage.transaction[0], self.flight.settled
        settled[client] = max(stage.settled, settled.get(client, 0))

    def _refusal(self, stage: Stage, pending: Pending) -> Outcome | None:
        epoch = self.flight.record.epoch
        refusal = refusal_of(stage, self._tables, self._state, pending, epoch)
        if refusal is None and stage.parts:
            return self._large.conflict(stage.transaction, pending, epoch)
        return refusal
