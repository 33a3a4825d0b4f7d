"""A worker among several: as `backend.worker`, with views that all of them keep together.

What shards send each other goes through shard 0, whose connections to all others are there
anyway. When the coordinator is lost, or a shard is, views are forgotten on all shards before
anything is committed that they would not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.hung_views import HungViews
from backend.messages import AddView, AskViews, Lookup, SetTables
from backend.miss_messages import LookupEach
from backend.sharded_view_messages import BundleSent, ViewsUsed
from backend.shared_memory.segment import SegmentNames
from backend.transport import Peer
from backend.view_shard import ViewShard
from backend.worker import Worker
from dataflow.epoch_effects import ApplyEpoch, PersistEpoch, Report, Send, ShardEffect, StartViews
from dataflow.epoch_messages import EpochLanded, ViewsFailed
from dataflow.epochs import ShardEpochs
from persistence.shard_store import ShardStore


class ShardedWorker(Worker):
    """Implements `backend.view_outside.Outside`."""

    def __init__(
        self, shard: int, shard_count: int, store: ShardStore, memory_bytes: int, names: SegmentNames | None = None
    ) -> None:
        super().__init__(shard, shard_count, store, memory_bytes, names)
        self._shard_views = ViewShard(shard, shard_count, store, memory_bytes, self, names)
        self.epochs = ShardEpochs(shard, store, store.prepared(), self._shard_views)
        self._versions: Mapping[int, int] = {}
        self._tables_held: SetTables | None = None
        self._handlers |= {
            AddView: self._add_view,
            Lookup: self._lookup,
            LookupEach: self._lookup,
            BundleSent: self._bundle_sent,
            ViewsUsed: self._views_used,
        }

    def close(self) -> None:
        self._shard_views.close()
        super().close()

    def watch(self, hung: HungViews) -> None:
        self._shard_views.hung = hung.names
        hung.watch(self._shard_views.running)

    # --- what the views want

    def send_bundle(self, to: int, payload: bytes) -> None:
        peer = self._coordinator_peer if self.coordinator is None else self._peer_of_shard.get(to)
        if peer is not None:
            peer.send(BundleSent(to, payload))

    def views_applied(self) -> None:
        self._run(self.epochs.applied())

    def want_epoch(self) -> None:
        self._run(self.epochs.want_epoch())

    def views_failed(self, failed: ViewsFailed) -> None:
        effects: list[ShardEffect] = [Report(failed)]
        self._run(effects)

    def views_used(self, views: list[bytes]) -> None:
        if self.coordinator is not None:
            self._shard_views.use.used(views)
        elif self._coordinator_peer is not None:
            self._coordinator_peer.send(ViewsUsed(views))

    def change_views(self, transition: bytes) -> bool:
        if self.coordinator is None or not self.coordinator.is_whole:
            return False
        self._run(self.coordinator.change_views(transition))
        return True

    # --- requests

    def _add_view(self, peer: Peer, request: int, message: AddView) -> None:
        self._shard_views.add(peer, request, message, self._versions)

    def _lookup(self, peer: Peer, request: int, message: Lookup | LookupEach) -> None:
        self._reads.count += 1
        self._shard_views.lookup(peer, request, message)

    def _bundle_sent(self, peer: Peer, request: int, message: BundleSent) -> None:
        if peer not in self._shard_of_peer:
            return
        if message.to == self.shard:
            self._shard_views.receive(message.bundle)
        else:
            self.send_bundle(message.to, message.bundle)

    def _views_used(self, peer: Peer, request: int, message: ViewsUsed) -> None:
        if peer in self._shard_of_peer:
            self._shard_views.use.used(message.views)

    def _ask_views(self, peer: Peer, request: int, message: AskViews) -> None:
        peer.send(self._shard_views.status(), request)

    def enforce_limit(self) -> None:
        self._shard_views.enforce_limit()
        self._large.check()
        if self.coordinator is not None:
            self._shard_views.retire(self.views.idle_s)

    @property
    def _view_facts(self) -> tuple[int, int, bool]:
        memory = self._shard_views.memory
        return self._shard_views.view_count, memory.total_bytes, memory.only_full_left

    def learn_tables(self, tables: SetTables) -> bool:
        """Views over another version of a table go first: no row that they cannot read may be committed before.

        They go in the same epoch on all shards, so whichever takes the versions over first, all are gone by then.
        """
        held = self._tables_held
        if tables.catalog_version <= max(self.catalog_version, 0 if held is None else held.catalog_version):
            return self._tables_in_force
        self._versions = tables.versions
        self._shard_views.blamed.tables_changed(tables.versions)
        if not self._shard_views.has_stale(tables.versions):
            self._tables_held = None
            return super().learn_tables(tables)
        self._tables_held = tables
        if self.coordinator is not None:
            self._shard_views.remove_stale(tables.versions)
        return False

    @property
    def _tables_in_force(self) -> bool:
        return self._tables_held is None and self.epochs.idle

    def _answer_tables(self) -> None:
        held = self._tables_held
        if held is not None and not self._shard_views.has_stale(held.versions):
            self._tables_held = None
            super().learn_tables(held)
        super()._answer_tables()

    # --- the coordinator

    def coordinator_lost(self, peer: Peer) -> None:
        was = self._coordinator_peer
        super().coordinator_lost(peer)
        if was is peer:
            self._shard_views.start(0)
            self._run([])

    def from_coordinator(self, peer: Peer, request: int, message: Any) -> None:
        if isinstance(message, BundleSent):
            if peer is self._coordinator_peer:
                self._shard_views.receive(message.bundle)
        else:
            super().from_coordinator(peer, request, message)

    def _from_shard(self, peer: Peer, request: int, message: Any) -> None:
        if isinstance(message, ViewsFailed):
            self._shard_views.blame(message)
        super()._from_shard(peer, request, message)

    def _carry_out(self, effect: ShardEffect | Send) -> None:
        match effect:
            case ApplyEpoch():
                self._shard_views.apply(effect, self.epochs.tables)
            case StartViews(generation):
                self._shard_views.start(generation)
            case PersistEpoch():
                self._shard_views.collect(effect)
                super()._carry_out(effect)
            case Report(ViewsFailed() as failed) if self.coordinator is not None:
                self._shard_views.blame(failed)
                super()._carry_out(effect)
            case Send(self.shard, EpochLanded()):
                self._shard_views.landed(self._versions)
                super()._carry_out(effect)
            case _:
                super()._carry_out(effect)
