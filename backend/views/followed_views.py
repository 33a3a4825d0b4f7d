"""The views of a worker that is alone, which follow a large transaction in a thread.

Meanwhile the engine belongs to the thread, and everybody else does without it: views are not looked up, so their
queries are evaluated, as of the epoch that views and reads still show; what changes views waits. Everything shows
the epoch at once when it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from backend.network.messages import Acknowledged, AskViews, Found, Lookup, UnknownView
from backend.network.miss_messages import FoundEach, LookupEach
from backend.network.program_messages import AddView, AskViewsInUse, ChangeViews, ViewsInUse
from backend.network.transport import Peer
from backend.network.view_messages import HostedViews
from backend.shared_memory.segment import SegmentNames
from backend.views.hosted_view import HostedView
from backend.views.hung_views import HungViews, running
from backend.views.table_use import TableChanges
from backend.views.view_changes import Slices, ViewChange
from backend.views.view_filling import Runner, StillFilling
from backend.views.view_host import ViewHost
from backend.views.view_range import EncodedRange
from backend.views.worker_views import Handlers, Hosting, ShownViews
from backend.worker.garbage import Garbage
from dataflow.commit.epoch_effects import ApplyEpoch, PersistEpoch, PreparedEpoch
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.schema import Table
from dataflow.state.clock import MemoryReport
from persistence.shard_store import ShardStore


class FollowedViews:
    """`fill` and `follow` do their work beside the event loop, each one piece at a time."""

    def __init__(
        self,
        store: ShardStore,
        memory_bytes: int,
        names: SegmentNames | None,
        fill: Runner,
        follow: Runner,
        garbage: Garbage,
        hosting: Hosting | None = None,
    ) -> None:
        self._host = ViewHost(store, memory_bytes, names, _Patient(fill, self.when_free))
        self._run = follow
        self._garbage = garbage
        self._hosting = hosting
        self.is_busy = False
        """Whether they follow an epoch in the thread."""
        self._changes = TableChanges()
        self._is_collected = False
        # The changes of an epoch that is being written were collected without the views that come.
        self._slices = Slices(lambda: not self._is_collected and not self.is_busy)
        self.handlers: Handlers = {
            ChangeViews: self._change,
            AskViewsInUse: lambda peer, request, _: self.when_free(lambda: peer.send(ViewsInUse(*self._host.kept_and_idle()), request)),
            AskViews: lambda peer, request, _: self.status(lambda status: peer.send(status, request)),
            Lookup: self._lookup,
            LookupEach: self._lookup_each,
        }
        self._waiting: list[Callable[[], None]] = []
        self._on_shown: Callable[[], None] = lambda: None
        self._limited: Callable[[int], AbstractContextManager[None]] = lambda rows: nullcontext()

    def close(self) -> None:
        self._run.close()
        self._host.close()

    @property
    def views(self) -> Mapping[bytes, HostedView]:
        return self._host.views

    @property
    def memory(self) -> MemoryReport:
        return self._host.memory

    @property
    def view_count(self) -> int:
        return len(self._host.views)

    def shown(self) -> ShownViews | None:
        return None if self._is_collected or self.is_busy else self._host.shown()

    def when_shown(self, action: Callable[[], None]) -> None:
        self._on_shown = action

    def keep_idle(self, seconds: float) -> None:
        self._host.idle_s = seconds

    def keep_small(self, rows_max: int) -> None:
        self._host.small.rows_max = rows_max

    def watch(self, hung: HungViews) -> None:
        self._host.hung = hung.names
        hung.watch(lambda frame: running(frame, self._host.views))
        self._limited = hung.limited

    def when_free(self, action: Callable[[], None]) -> None:
        """Do it now, or as soon as the thread is done."""
        if self.is_busy:
            self._waiting.append(action)
        else:
            action()

    # --- epochs

    def is_due(self, record: PreparedEpoch | None) -> bool:
        return False

    def passed(self, epoch: int) -> None: ...

    def collect(self, epoch: PersistEpoch) -> bool:
        self._changes, self._is_collected = self.changes(epoch), True
        return bool(self._changes)

    def stored(self, wait: Callable[[], None], then: Callable[[int], None]) -> None:
        self.apply_changes(self._changes, wait, lambda count: self._shown(count, then))

    def _shown(self, count: int, then: Callable[[int], None]) -> None:
        self._changes, self._is_collected = TableChanges(), False
        self._on_shown()
        self._slices.go_on()
        then(count)

    def apply(self, epoch: ApplyEpoch) -> None:
        raise AssertionError("there is nobody to do it with")

    def landed(self) -> None: ...

    def start(self, generation: int) -> None: ...

    def blame(self, failed: ViewsFailed) -> None: ...

    def shard_found(self, shard: int, peer: Peer) -> None: ...

    def peer_lost(self, peer: Peer) -> None: ...

    def changes(self, epoch: PersistEpoch) -> TableChanges:
        return self._host.changes(epoch)

    def apply_changes(self, changes: TableChanges, wait: Callable[[], None], then: Callable[[int], None]) -> None:
        """As `ViewHost.apply`; what it would return is given to `then`."""
        if changes.large is None:
            with self._garbage.many_rows(changes.new_count):
                count = self._host.apply(changes, wait)
            then(count)
        elif not self._host.begin(changes, wait):
            then(0)
        else:
            self.is_busy = True
            self._run(lambda: self._follow(changes), lambda error: self._followed(changes, wait, then, error))

    def _follow(self, changes: TableChanges) -> None:
        assert changes.large is not None
        rows = len(changes.large[0].values)
        with self._garbage.many_rows(rows), self._limited(rows):
            self._host.follow(changes)

    def _followed(
        self, changes: TableChanges, wait: Callable[[], None], then: Callable[[int], None], error: BaseException | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            raise error
        self.is_busy = False
        count = self._host.end(changes, wait, error)
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()
        then(count)

    # --- what others ask

    def add(self, view: AddView, versions: Mapping[int, int]) -> bool:
        """As `ViewHost.add`; not now, if they are busy."""
        return not self.is_busy and self._host.add(view, versions)

    def lookup_shared(self, name: bytes, keys: bytes, part: EncodedRange | None) -> tuple[list[bytes], str] | None:
        """As `ViewHost.lookup_shared`. StillFilling if the view is being filled: all who want it wait for one fill."""
        if self.is_busy:
            return None
        if name not in self._host.views and (fill := self._host.filling(name)) is not None:
            raise StillFilling(fill)
        return self._host.lookup_shared(name, keys, part)

    def lookup_each(self, name: bytes, keys: bytes) -> tuple[list[bytes | None], str] | None:
        return None if self.is_busy else self._host.lookup_each(name, keys)

    def _change(self, peer: Peer, request: int, message: ChangeViews) -> None:
        self._slices.extend([partial(self._host.remove, name) for name in message.removed])
        change = ViewChange(peer, request, message, lambda: self._host.views)
        self._slices.extend([partial(self._add, change, place, view) for place, view in enumerate(message.added)])
        self._slices.go_on()

    def _add(self, change: ViewChange, place: int, view: AddView) -> None:
        assert self._hosting is not None
        change.send(Acknowledged() if self.add(view, self._hosting.epochs.tables) else UnknownView(), place)

    def _lookup(self, peer: Peer, request: int, message: Lookup) -> None:
        assert self._hosting is not None
        self._hosting.count_reads(1)
        found = self.lookup_shared(message.view, message.keys, message.part)
        peer.send(UnknownView() if found is None else Found(*found), request)

    def _lookup_each(self, peer: Peer, request: int, message: LookupEach) -> None:
        assert self._hosting is not None
        found = self.lookup_each(message.view, message.keys)
        if found is None:
            peer.send(UnknownView(), request)
            return
        self._hosting.count_reads(len(found[0]))
        peer.send_now(FoundEach(*found), request)

    def tables_changed(self, versions: Mapping[int, int], tables: Mapping[int, Table]) -> None:
        self.when_free(lambda: self._host.tables_changed(versions, tables))

    def allow(self, versions: Mapping[int, int]) -> bool:
        return True

    def enforce_limit(self) -> None:
        if not self.is_busy:
            self._host.enforce_limit()

    def status(self, then: Callable[[HostedViews], None]) -> None:
        """What is kept is given to `then`."""
        self.when_free(lambda: then(self._host.status()))


class _Patient:
    """A runner whose results wait until the views are free."""

    def __init__(self, run: Runner, when_free: Callable[[Callable[[], None]], None]) -> None:
        self._run = run
        self._when_free = when_free

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self._run(work, lambda error: self._when_free(lambda: done(error)))

    def renew(self) -> None:
        self._run.renew()

    def close(self) -> None:
        self._run.close()
