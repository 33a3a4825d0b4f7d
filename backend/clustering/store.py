"""The store that statements run on: reads, counters and atomic commits over bytes.

Keys and values are made by `persistence`; a worker knows nothing of SQL. Every stored value
carries the epoch that wrote it, its *version*, and a commit names the version it expects of
each key it touches: it happens as a whole, or not at all because something else came first.

A row lives on the shard of its primary key, with its non-unique index entries; a unique
index entry lives on the shard of its own key, which makes uniqueness a check on one shard.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from backend.clustering.leader import Planner
from backend.clustering.point_writes import PointWrites
from backend.network.scan_messages import ScanColumns
from backend.network.view_messages import HostedViews
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition
from backend.views.view_range import Range
from backend.worker.row_locks import Owner
from dataflow.commit.epoch_messages import (
    ABSENT,
    ANY,
    NEW,
    PRESENT,
    Check,
    Committed,
    Puts,
    StaleSchema,
    Stored,
    Unchanged,
    Write,
)

if TYPE_CHECKING:
    from backend.jobs.data_jobs import DataJobs

__all__ = [
    "ABSENT",
    "ANY",
    "COLUMN_ROWS_MIN",
    "NEW",
    "PRESENT",
    "Address",
    "Check",
    "CommitPart",
    "CommitResult",
    "Committed",
    "Conflict",
    "Locked",
    "Owner",
    "Puts",
    "StaleSchema",
    "Store",
    "Stored",
    "Unchanged",
    "Write",
]


Address = tuple[int, bytes]
"""(shard, key)"""
COLUMN_ROWS_MIN = 2_000


@dataclass(slots=True)
class CommitPart:
    """One shard's share of a commit."""

    writes: list[Write]
    checks: list[Check]
    puts: list[Puts] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    """Rows that were read and must be as they were; only where the commit is not large."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing was written: `key` on `shard` holds `found`, which is not what was expected."""

    shard: int
    key: bytes
    found: Stored | None


@dataclass(frozen=True, slots=True)
class Locked:
    """Nothing was written: another transaction has locked `key` on `shard`."""

    shard: int
    key: bytes


CommitResult = Committed | Conflict | StaleSchema | Locked


class Store(Protocol):
    """The cluster as seen by one connection. Reads see at least that connection's own commits.

    Every call raises `Retryable` when a shard could not be reached within the time limit; a
    commit that raises may or may not have happened only if the error says so.
    """

    @property
    def shard_count(self) -> int: ...

    def shard_of(self, key: bytes) -> int: ...

    async def read_epoch(self) -> int:
        """An epoch for reads of several shards that must fit together; 0 if there is only one shard.

        Everything acknowledged to anyone before this call is in it. It can be read for a
        limited time; then reads raise `Retryable`, and a newer one has to be asked for.
        """
        ...

    async def hold_epoch(self) -> int:
        """As `read_epoch`, also of one shard, and it can be read until it is released or a shard is lost."""
        ...

    def release_epoch(self, epoch: int) -> None:
        """It is not read any more by one who has held it."""
        ...

    async def get(self, keys: Sequence[tuple[int, bytes]], epoch: int = 0) -> list[Stored | None]:
        """The values of (shard, key) pairs, in order, as of `epoch` or of now (0)."""
        ...

    def scan(
        self,
        shard: int,
        start: bytes,
        stop: bytes,
        *,
        resolve: bytes | None = None,
        reverse: bool = False,
        epoch: int = 0,
    ) -> AsyncIterator[list[tuple[bytes, int, bytes]]]:
        """(key, version, value) of start ≤ key < stop in key order, in chunks, all as of `epoch` or of now (0).

        With `resolve`, each entry found is an index entry whose value is a primary key: what
        comes back is (resolve + primary key, version, value) of the row, in index order.
        """
        ...

    @property
    def column_rows_min(self) -> int | None:
        """A table of which more rows than these are read is read by column, where that gives the same; None: never."""
        ...

    @property
    def jobs(self) -> DataJobs | None:
        """Those of Spark, where there is one."""
        ...

    def scan_columns(self, shard: int, scan: ScanColumns) -> AsyncGenerator[bytes, None]:
        """The record batches of a scan by column; may be `GaveUp`."""
        ...

    async def lookup_view(
        self, definition: ViewDefinition, keys: bytes, part: Range | None = None
    ) -> list[bytes] | None:
        """The rows of each key of a maintained view, as of now, encoded; the view is made if need be.

        With `part`, only those in that range, in its order; the view must have an order.

        None if no view can serve this: there are several shards, or a table has changed.
        """
        ...

    @property
    def inherited(self) -> set[bytes]:
        """The names of views that were maintained before this process began, and were not asked for here yet."""
        ...

    @property
    def known_views(self) -> Set[bytes]:
        """The names of views that were asked for before: what is found by their keys need not be computed."""
        ...

    @property
    def shared_views(self) -> SharedViews | None:
        """The views that this process can read by itself; None if there never are any."""
        ...

    @property
    def point_writes(self) -> PointWrites | None:
        """Where writes of one row are run by who has the row; None if there is nobody."""
        ...

    @property
    def planner(self) -> Planner | None:
        """Who plans new views against all others; without one there are no new ones."""
        ...

    async def view_status(self) -> list[tuple[int, HostedViews]]:
        """(shard, what it keeps in views)"""
        ...

    async def allocate(self, counter: bytes, count: int, floor: int = 0) -> int:
        """Reserve `count` consecutive numbers ≥ max(floor, 1) never handed out; return the first.

        With count = 0 the counter is only raised: numbers below `floor` will not be handed out.
        """
        ...

    async def lower(self, counter: bytes, expected: int, number: int) -> int:
        """Hand out `number` next if it is `expected` now, which the caller knows to be safe; what is next then."""
        ...

    def lock_owner(self) -> Owner:
        """A name for somebody who is going to lock keys."""
        ...

    async def lock(
        self, owner: Owner, keys: Sequence[tuple[int, bytes]], shared: bool, waiting: str, timeout_s: float
    ) -> tuple[list[Stored | None], list[int]]:
        """Lock (shard, key) pairs in their order, however they are given, so that two who want the same
        do not wait for each other; their values now, and the places of those that were skipped.

        `waiting` is what to do about another's key, see `row_locks`. Raises `Retryable` with
        LOCK_WAIT_TIMEOUT, LOCK_NOWAIT or DEADLOCK.
        """
        ...

    def unlock(self, owner: Owner, shards: Iterable[int]) -> None:
        """Give up all locks that the owner has there; takes effect some time soon."""
        ...

    async def commit(
        self, parts: Mapping[int, CommitPart], tables: Mapping[int, int], owner: Owner | None = None
    ) -> CommitResult:
        """Write all parts atomically, if every expectation and every {table id: version} holds.

        If it is done, the locks that `owner` has on the shards of `parts` are gone.
        """
        ...
