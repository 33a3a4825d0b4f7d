"""A worker's side of `backend.clustering.point_writes`: the statements that it knows, and their runs as stages of epochs."""

from __future__ import annotations

from collections.abc import Callable

from backend.execution.writes.point_write import PointStatement
from backend.network.messages import Acknowledged
from backend.network.statement_messages import AddStatement, RunStatements, UnknownStatement
from backend.network.transport import Peer
from backend.worker.row_lock_service import RowLockService
from dataflow.commit.statement_stage import StatementStage
from persistence.layout import shard_of
from persistence.shard_store import ShardStore

STATEMENTS_MAX = 10_000
"""Beyond that all are forgotten: whoever needs one makes it known again."""


class StatementService:
    def __init__(self, shard: int, shard_count: int, store: ShardStore, locks: RowLockService) -> None:
        self._shard = shard
        self._is_here: Callable[[bytes], bool] = lambda key: shard_of(key, shard_count) == shard
        self._store = store
        self._locks = locks
        self._known: dict[bytes, PointStatement] = {}
        self.run_count = 0
        """So many messages had statements that were run."""

    def add(self, peer: Peer, request: int, message: AddStatement) -> None:
        if len(self._known) >= STATEMENTS_MAX:
            self._known.clear()
        self._known[message.name] = PointStatement(message.definition, self._store, self._locks.is_wanted, self._is_here)
        peer.send(Acknowledged(), request)

    def stage(self, peer: Peer, request: int, message: RunStatements) -> StatementStage | None:
        """What is to be staged; None if it was answered."""
        statement = self._known.get(message.statement)
        if statement is None:
            peer.send(UnknownStatement(), request)
            return None
        self._store.require_room_for_rows()
        transaction, rows = message.transaction, message.rows
        locks = self._locks

        def run(writes: dict[bytes, bytes | None], absent: set[bytes]) -> tuple[list[int], set[bytes]]:
            self.run_count += 1
            found = statement.run(rows, writes, absent)
            locks.wrote(stage, found[1])
            return found

        stage = StatementStage(self._shard, transaction, message.settled, statement.table, len(rows), run)
        return stage
