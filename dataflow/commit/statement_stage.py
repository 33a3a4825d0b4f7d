"""Statements that a shard runs by itself, as their epoch opens.

Whoever sends them has nothing to read first, and no version to expect: they see the stored state and what the epoch's
earlier transactions write, so statements about the same row never conflict, and numbers are given in commit order.
"""

from __future__ import annotations

from collections.abc import Callable

from dataflow.commit.epoch_messages import TransactionId

ELSEWHERE = -1
"""The result of a statement that was not run: its client has to do it by itself."""

Run = Callable[[dict[bytes, bytes | None], set[bytes]], tuple[list[int], set[bytes]]]
"""(what the epoch writes until now, keys of it that were not there before it; both are added to)
to the result of each statement, and the keys that they have written."""


class StatementStage:
    """Statements about one table of one version, all of one client, which are one transaction."""

    __slots__ = ("count", "keys", "participants", "run", "settled", "table", "transaction", "version")

    owner = None
    parts = 0

    def __init__(
        self, shard: int, transaction: TransactionId, settled: int, table: tuple[int, int], count: int, run: Run
    ) -> None:
        """`table` is its id and version, `count` says how many statements there are."""
        self.transaction = transaction
        self.settled = settled
        self.participants = (shard,)
        self.table, self.version = table
        self.count = count
        self.run = run
        self.keys: set[bytes] = set()
        """What they have written, once they were run."""
