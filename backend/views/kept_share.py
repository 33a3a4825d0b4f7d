"""What a worker keeps of its views while another is missing, for a minute at most; and what shard 0 is told of it.

A worker that has just begun keeps nothing of views, but what changes in its tables, so that those of others can go on
(`dataflow.runtime.kept_views`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from backend.network.view_messages import ViewsKept
from backend.views.known_view import KnownView
from backend.views.table_use import TableUse
from backend.views.view_transitions import encoded_views
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.runtime.kept_views import NEVER, KeptViews
from dataflow.runtime.shard_views import ShardViews
from persistence.shard_store import ShardStore

KEPT_S = 60.0
"""Kept views take memory besides those that have come anew, and the state of the tables that goes with them room on disk."""


class KeptShare:
    def __init__(self, store: ShardStore, use: TableUse, views: ShardViews, tell: Callable[[ViewsKept], None]) -> None:
        """`tell` tells shard 0."""
        self._store, self._use, self._views, self._tell = store, use, views, tell
        self._began = time.monotonic()
        self._kept: KeptViews | None = None
        self._definitions = b""
        self._is_told = True

    def collect(self, epoch: PersistEpoch) -> None:
        """An epoch is about to be stored."""
        if self._views.tables.since == NEVER:
            return
        before, use = self._store.view(), self._use
        rows = NEVER if epoch.large is not None else len(epoch.writes) + sum([len(puts.keys) for puts in epoch.new])
        self._views.tables.collect(rows, lambda: use.deltas(use.changes(epoch, before)))

    def started(self, generation: int, known: Mapping[bytes, KnownView]) -> None:
        """The views, of which these were `known`, have ended."""
        kept = self._views.kept
        if kept is not None and kept is not self._kept:
            self._began = time.monotonic()
            self._definitions = encoded_views([(known[bytes(each.view)].message, each.full) for each in kept.views])
        self._kept = kept
        self._is_told = not generation

    def tell(self) -> None:
        """Tell shard 0 what was kept, unless it knows."""
        if not self._is_told:
            self._is_told = True
            self._tell(ViewsKept(self._views.report(), self._definitions))

    def check(self) -> None:
        """To be called once a second."""
        if time.monotonic() - self._began > KEPT_S:
            self._kept = None
            self._views.forget_kept()
