"""A store in this process: several shards on disk, no network, each commit its own epoch.

The embedded engine of tests and tools. A commit validates all shards and then writes them
one after the other, which is atomic for everyone in this process, but not if the process
dies in between; a cluster commits through its epochs instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence, Set
from pathlib import Path

from backend.clustering.leader import Planner
from backend.clustering.store import (
    ANY,
    COLUMN_ROWS_MIN,
    NEW,
    CommitPart,
    CommitResult,
    Committed,
    Conflict,
    Locked,
    Owner,
    StaleSchema,
    Stored,
)
from backend.network.messages import Found
from backend.network.program_messages import AddView, ShownTransition, ViewPlan
from backend.network.scan_messages import ScanColumns
from backend.network.view_messages import HostedViews
from backend.scans.column_cache import ColumnCache
from backend.scans.column_scans import batches_of
from backend.shared_memory.segment import SegmentNames
from backend.views.program_plan import ProgramPlan, plan_text
from backend.views.shared_view import SharedViews
from backend.views.table_use import TableChanges
from backend.views.view_definition import ViewDefinition
from backend.views.view_host import ViewHost
from backend.views.view_range import Range
from backend.views.view_restarting import FOLLOWED_ROWS_MAX
from backend.worker.row_locks import KeyRequest, RowLocks, WaitGraph
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.commit.epoch_messages import is_met
from dataflow.errors import Condition, Retryable
from dataflow.schema import Table
from persistence.layout import shard_of
from persistence.shard_store import Durability, ShardStore
from persistence.view import StateView

VIEW_BYTES_MAX = 1 << 30


class LocalStore:
    """Shards under `folder`. `table_versions` holds the version of each table that exists.

    With `names`, views are shown in shared memory, as a worker does. Implements `backend.clustering.leader.Planner`, too.
    """

    def __init__(
        self, folder: Path, shard_count: int = 1, durability: Durability = "os", names: SegmentNames | None = None
    ) -> None:
        self.shards = [ShardStore(folder / f"shard-{number}", durability) for number in range(shard_count)]
        self.table_versions: Mapping[int, int] = {}
        self.tables: Mapping[int, Table] = {}
        self._epoch = max(shard.readable_epoch for shard in self.shards)
        self._held: dict[int, tuple[list[StateView], int]] = {}
        self._views = ViewHost(self.shards[0], VIEW_BYTES_MAX, names)
        self._plan = ProgramPlan()
        self._transitions: list[ShownTransition] = []
        self.inherited: set[bytes] = set()
        self.point_writes = None
        self.column_rows_min: int | None = COLUMN_ROWS_MIN
        self.jobs = None
        self._column_caches = [ColumnCache(shard.rows_changed) for shard in self.shards]
        self.shared_views = None if names is None else SharedViews()
        self._locks = RowLocks(self._waits)
        self._graph = WaitGraph()
        self._lock_owners = 0

    def close(self) -> None:
        self._views.close()
        self._held.clear()
        for shard in self.shards:
            shard.close()

    @property
    def shard_count(self) -> int:
        return len(self.shards)

    def shard_of(self, key: bytes) -> int:
        return shard_of(key, len(self.shards))

    async def read_epoch(self) -> int:
        return self._epoch if len(self.shards) > 1 else 0

    async def hold_epoch(self) -> int:
        await asyncio.sleep(0)
        views, count = self._held.get(self._epoch) or ([shard.view() for shard in self.shards], 0)
        self._held[self._epoch] = views, count + 1
        return self._epoch

    def release_epoch(self, epoch: int) -> None:
        views, count = self._held.pop(epoch)
        if count > 1:
            self._held[epoch] = views, count - 1

    async def get(self, keys: Sequence[tuple[int, bytes]], epoch: int = 0) -> list[Stored | None]:
        await asyncio.sleep(0)  # others get their turn, as during a request over the network
        if not epoch:
            return [self.shards[shard].get(key) for shard, key in keys]
        views = {shard: self._view(shard, epoch) for shard, _ in keys}
        return [views[shard].get(key) for shard, key in keys]

    async def scan(
        self,
        shard: int,
        start: bytes,
        stop: bytes,
        *,
        resolve: bytes | None = None,
        reverse: bool = False,
        epoch: int = 0,
    ) -> AsyncIterator[list[tuple[bytes, int, bytes]]]:
        view = self._view(shard, epoch) if epoch else self.shards[shard].view()
        for chunk in view.scan(start, stop, resolve=resolve, reverse=reverse):
            yield chunk
            await asyncio.sleep(0)

    async def scan_columns(self, shard: int, scan: ScanColumns) -> AsyncGenerator[bytes, None]:
        view = self._view(shard, scan.epoch) if scan.epoch else self.shards[shard].view()
        for batch in batches_of(view, scan, self._column_caches[shard]):
            if batch:
                yield batch
            await asyncio.sleep(0)

    def _view(self, shard: int, epoch: int) -> StateView:
        held = self._held.get(epoch)
        view = self.shards[shard].view_at(epoch) if held is None else held[0][shard]
        if view is None:
            raise Retryable(Condition.UNKNOWN_ERROR, f"epoch {epoch} is not kept any more")
        return view

    async def lookup_view(
        self, definition: ViewDefinition, keys: bytes, part: Range | None = None
    ) -> list[bytes] | None:
        if len(self.shards) != 1:
            return None
        self._views.tables_changed(self.table_versions, self.tables)
        if not await self.maintain([definition.request()]):
            return None
        found = self._views.lookup_shared(definition.name, keys, None if part is None else part.encoded())
        if found is None:
            return None
        if self.shared_views is not None:
            self.shared_views.learn(definition, Found(*found))
        return found[0]

    def _add_view(self, view: AddView) -> bool:
        """Plan a new view, and have it: a transition of its own."""
        plan = self._plan.add(view)
        if not self._views.add(view, self.table_versions):
            self._plan.remove(view.view)
            return False
        self._transitions.append(ShownTransition(len(self._transitions) + 1, time.time(), [view.view], [], plan_text(plan)))
        return True

    @property
    def planner(self) -> Planner:
        return self

    async def maintain(self, views: list[AddView]) -> list[bytes]:
        return [each.view for each in views if each.view in self._views.views or self._add_view(each)]

    async def plan(self, view: AddView) -> ViewPlan | None:
        for name in self._plan.names - self._views.views.keys():
            self._plan.remove(name)
        return self._plan.look(view) if len(self.shards) == 1 else None

    async def transitions(self) -> list[ShownTransition]:
        return list(self._transitions)

    @property
    def known_views(self) -> Set[bytes]:
        return self._views.views.keys()

    def hosted_views(self) -> list[bytes]:
        """The names of the views that are maintained now."""
        return list(self._views.views)

    async def view_status(self) -> list[tuple[int, HostedViews]]:
        return [(0, self._views.status())] if len(self.shards) == 1 else []

    async def allocate(self, counter: bytes, count: int, floor: int = 0) -> int:
        return self.shards[self.shard_of(counter)].allocate(counter, count, floor)

    async def lower(self, counter: bytes, expected: int, number: int) -> int:
        return self.shards[self.shard_of(counter)].allocate(counter, 0, number, expected)

    def lock_owner(self) -> Owner:
        self._lock_owners += 1
        return b"", -self._lock_owners

    async def lock(
        self, owner: Owner, keys: Sequence[tuple[int, bytes]], shared: bool, waiting: str, timeout_s: float
    ) -> tuple[list[Stored | None], list[int]]:
        await asyncio.sleep(0)
        answer: asyncio.Future[Condition | None] = asyncio.get_running_loop().create_future()
        places = sorted(range(len(keys)), key=keys.__getitem__)
        request = KeyRequest(owner, [keys[place][1] for place in places], shared, waiting, answer.set_result)
        self._locks.request(request)
        try:
            refusal = await asyncio.wait_for(asyncio.shield(answer), timeout_s)
        except BaseException as error:
            self._locks.withdraw(owner)
            if isinstance(error, TimeoutError):
                raise Retryable(Condition.LOCK_WAIT_TIMEOUT) from None
            raise
        if refusal is not None:
            raise Retryable(refusal)
        return [self.shards[shard].get(key) for shard, key in keys], [places[each] for each in request.skipped]

    def unlock(self, owner: Owner, shards: Iterable[int]) -> None:
        self._locks.release(owner)

    def _waits(self, owner: Owner, blockers: frozenset[Owner]) -> None:
        if self._graph.update(0, owner, blockers):
            self._locks.break_wait(owner)

    def _end_views(self) -> None:
        """Views do not follow a large transaction, for which there is no thread here: they are made again when they are asked for."""
        for name in list(self._views.views):
            self._views.remove(name)

    async def commit(
        self, parts: Mapping[int, CommitPart], tables: Mapping[int, int], owner: Owner | None = None
    ) -> CommitResult:
        await asyncio.sleep(0)
        for number, part in parts.items():
            locked = self._locks.blocker(owner or (b"", 0), part.writes, part.checks, part.puts)
            if locked is not None:
                return Locked(number, locked)
        for table_id, version in tables.items():
            if self.table_versions.get(table_id) != version:
                return StaleSchema(table_id)
        for number, part in parts.items():
            shard = self.shards[number]
            for start, stop, since in part.unchanged:
                if not shard.are_unchanged(start, stop, since):
                    return Conflict(number, start, None)
            expectations = [(key, expected) for key, expected, _ in part.writes] + part.checks
            expectations += [(key, puts.expected) for puts in part.puts for key in puts.keys]
            for key, expected in expectations:
                if expected != ANY and not is_met(expected, shard.version_of(key)):
                    return Conflict(number, key, shard.get(key))
        self._epoch += 1
        self._views.tables_changed(self.table_versions, self.tables)  # before they follow: they may read an index that is gone
        for number, part in parts.items():
            if part.writes or part.puts:
                writes: dict[bytes, bytes | None] = {key: value for key, _, value in part.writes}
                new = [puts for puts in part.puts if puts.expected == NEW]
                if len(writes) + sum(len(puts.keys) for puts in part.puts) > FOLLOWED_ROWS_MAX:
                    self._end_views()
                for puts in part.puts:
                    if puts.expected != NEW:
                        writes.update(puts.items())
                epoch = PersistEpoch(self._epoch, writes, [], {}, None, durable=True, new=new)
                changes = self._views.changes(epoch) if len(self.shards) == 1 else TableChanges()
                self.shards[number].persist_epoch(epoch)
                self._views.apply(changes)
        if owner is not None:
            self._locks.release(owner)
        return Committed(self._epoch)
