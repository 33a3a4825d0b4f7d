"""The views of a worker among several, which all of them keep together (`backend.views.view_shard`).

When the coordinator is lost, or a shard is, views are forgotten on all shards before
anything is committed that they would not show. New versions of tables wait until the views over others are gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from backend.network.bundles import BundleSent, ShardLinked
from backend.network.messages import AskViews, Lookup
from backend.network.miss_messages import LookupEach
from backend.network.program_messages import AddView, AskViewsInUse, ChangeViews, ViewsInUse
from backend.network.transport import Peer
from backend.network.view_messages import EndedViews, FillReported, KeysWanted, ViewsKept, ViewsUsed
from backend.shared_memory.segment import SegmentNames
from backend.views.hung_views import HungViews
from backend.views.view_changes import Slices, ViewChange
from backend.views.view_filling import Runner
from backend.views.view_shard import ViewShard
from backend.views.worker_views import Handlers, Hosting, ShownViews
from backend.worker.shard_links import ShardLinks
from dataflow.commit.epoch_effects import (
    ApplyEpoch,
    PersistEpoch,
    PreparedEpoch,
    ReportToCoordinator,
    ShardEffect,
)
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.schema import Table
from dataflow.state.clock import MemoryReport
from persistence.shard_store import ShardStore


class ViewsOfSeveral:
    """Implements `backend.views.worker_views.WorkerViews` and `backend.views.view_shard.Outside`."""

    def __init__(
        self,
        hosting: Hosting,
        shard: int,
        shard_count: int,
        store: ShardStore,
        memory_bytes: int,
        names: SegmentNames | None,
        fill: Runner,
    ) -> None:
        """`fill` does its work beside the event loop."""
        self._hosting = hosting
        self._shard = shard
        self._views = ViewShard(shard, shard_count, store, memory_bytes, self, fill, names)
        self._transitions = self._views.transitions
        self._links = ShardLinks(self._views.link_broken)
        self._versions: Mapping[int, int] = {}
        self._idle_s = math.inf
        self._slices = Slices(lambda: True)
        self.handlers: Handlers = {
            ChangeViews: self._change,
            AskViewsInUse: self._tell_in_use,
            AskViews: lambda peer, request, _: peer.send(self._views.status(), request),
            Lookup: self._lookup,
            LookupEach: self._lookup,
            BundleSent: self._bundle_sent,
            ShardLinked: lambda peer, _, message: self._links.found(message.shard, peer),
            ViewsUsed: self._used,
            FillReported: self._fill_reported,
            EndedViews: self._views_ended,
            KeysWanted: self._keys_wanted,
            ViewsKept: self._views_kept,
        }

    @property
    def view_count(self) -> int:
        return len(self._transitions.hosted)

    @property
    def memory(self) -> MemoryReport:
        return self._views.memory

    def shown(self) -> ShownViews | None:
        return self._views.shown()

    def when_shown(self, action: Callable[[], None]) -> None:
        self._views.on_shown = action

    def keep_idle(self, seconds: float) -> None:
        self._idle_s = seconds

    def keep_small(self, rows_max: int) -> None:
        self._transitions.keep_small(rows_max)

    def watch(self, hung: HungViews) -> None:
        self._views.hung = hung.names
        hung.watch(self._views.running)

    def close(self) -> None:
        self._views.close()

    # --- epochs

    def is_due(self, record: PreparedEpoch | None) -> bool:
        return self._views.is_due(record)

    def passed(self, epoch: int) -> None:
        self._views.passed(epoch)

    def collect(self, epoch: PersistEpoch) -> bool:
        self._views.collect(epoch)
        return False

    def stored(self, wait: Callable[[], None], then: Callable[[int], None]) -> None:
        wait()
        then(0)

    def apply(self, epoch: ApplyEpoch) -> None:
        self._views.apply(epoch, self._hosting.epochs.tables)

    def landed(self) -> None:
        self._views.landed(self._versions)

    def start(self, generation: int) -> None:
        self._links.forget()
        self._views.start(generation)
        self._tell_kept()

    def _tell_kept(self) -> None:
        """Tell shard 0 what was kept, once the tables are known that views may be made of."""
        if self._versions:
            self._views.kept.tell()

    def blame(self, failed: ViewsFailed) -> None:
        self._transitions.blame(failed)

    def enforce_limit(self) -> None:
        self._views.enforce_limit()

    def tables_changed(self, versions: Mapping[int, int], tables: Mapping[int, Table]) -> None:
        """Views over another version of a table go, or get to know it, first: no row that they cannot read may be committed before.

        They do in the same epoch on all shards, so whichever takes the versions over first, all have done so by then.
        """
        self._versions = versions
        self._transitions.aside.tables_changed(versions)
        if self._hosting.coordinator is not None:
            self._transitions.tables_changed(versions, tables)
        self._tell_kept()

    def allow(self, versions: Mapping[int, int]) -> bool:
        return not self._transitions.has_stale(versions)

    # --- the other shards

    def shard_found(self, shard: int, peer: Peer) -> None:
        if self._shard and shard:  # shard 0 is told by `ShardJoined`
            peer.send(ShardLinked(self._shard))  # first, so that bundles come from somebody
        self._links.found(shard, peer)

    def peer_lost(self, peer: Peer) -> None:
        self._links.lost(peer)

    def _bundle_sent(self, peer: Peer, request: int, message: BundleSent) -> None:
        if self._links.knows(peer):
            self._views.receive(message.bundle)

    def _used(self, peer: Peer, request: int, message: ViewsUsed) -> None:
        if self._links.knows(peer):
            self._views.use.used(message.views)

    def _fill_reported(self, peer: Peer, request: int, message: FillReported) -> None:
        if self._links.knows(peer):
            self._views.fill_reported(message)

    def _views_ended(self, peer: Peer, request: int, message: EndedViews) -> None:
        if self._links.knows(peer):
            self._transitions.ended(message)

    def _keys_wanted(self, peer: Peer, request: int, message: KeysWanted) -> None:
        if self._links.knows(peer):
            self._transitions.keys_wanted(message.views)

    def _views_kept(self, peer: Peer, request: int, message: ViewsKept) -> None:
        if self._links.knows(peer):
            self._transitions.kept_reported(message, self._versions)

    def _change(self, peer: Peer, request: int, message: ChangeViews) -> None:
        """On shard 0: have all shards make the transition."""
        self._slices.extend([partial(self._transitions.remove, name) for name in message.removed])
        change = ViewChange(peer, request, message, lambda: self._transitions.hosted)
        self._slices.extend([partial(self._add, change, place, view) for place, view in enumerate(message.added)])
        self._slices.go_on()

    def _add(self, change: ViewChange, place: int, view: AddView) -> None:
        self._transitions.add(change, place, view, self._versions)

    def _tell_in_use(self, peer: Peer, request: int, _: AskViewsInUse) -> None:
        """On shard 0: those that no shard has used for long are to go, unless they read named views."""
        views, outgrown = self._transitions.kept_and_outgrown()
        idle = self._views.use.idle(self._transitions.hosted, self._idle_s)
        peer.send(ViewsInUse(views, [*idle, *outgrown]), request)

    def _lookup(self, peer: Peer, request: int, message: Any) -> None:
        self._hosting.count_reads(1)
        self._views.lookup(peer, request, message)

    # --- what the shard's part wants

    def send_bundle(self, to: int, payload: bytes) -> None:
        self._links.send(to, payload)

    def views_applied(self) -> None:
        self._hosting.run(self._hosting.epochs.applied())

    def want_epoch(self) -> None:
        self._hosting.run(self._hosting.epochs.want_epoch())

    def views_failed(self, failed: ViewsFailed) -> None:
        effects: list[ShardEffect] = [ReportToCoordinator(failed)]
        self._hosting.run(effects)

    def views_used(self, views: list[bytes]) -> None:
        if self._hosting.coordinator is not None:
            self._views.use.used(views)
        else:
            self._hosting.tell_coordinator(ViewsUsed(views))

    def fill_reported(self, report: FillReported) -> None:
        if self._hosting.coordinator is not None:
            self._views.fill_reported(report)
        else:
            self._hosting.tell_coordinator(report)

    def views_ended(self, ended: EndedViews) -> None:
        if self._hosting.coordinator is not None:
            self._transitions.ended(ended)
        else:
            self._hosting.tell_coordinator(ended)

    def keys_wanted(self, views: list[bytes]) -> None:
        if self._hosting.coordinator is not None:
            self._transitions.keys_wanted(views)
        else:
            self._hosting.tell_coordinator(KeysWanted(views))

    def views_kept(self, kept: ViewsKept) -> None:
        if self._hosting.coordinator is not None:
            self._transitions.kept_reported(kept, self._versions)
        else:
            self._hosting.tell_coordinator(kept)

    def change_views(self, transition: bytes) -> bool:
        coordinator = self._hosting.coordinator
        if coordinator is None or not coordinator.is_whole:
            return False
        self._hosting.run(coordinator.change_views(transition))
        return True
