"""The change feeds of a worker: answers those who read them, and has the changes of views recorded.

What an epoch changes in a table is stored with it (`persistence.change_feeds`). What it changes in a view is known once the view
shows it. From then on it is recorded beside the event loop, and nobody waits for it but the readers of the feed. Too much
that is not recorded yet is dropped, and the view compared as a whole once the rest is: a slow disk makes no worker grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from backend.network.feed_messages import (
    AskFeeds,
    CountFeed,
    FeedCounts,
    FeedGone,
    FeedRead,
    FeedState,
    ForgetFeed,
    KeepFeed,
    KeptFeeds,
    ReadFeed,
)
from backend.network.messages import Acknowledged
from backend.network.transport import Peer
from backend.views.worker_views import Hosting, ShownViews, WorkerViews
from backend.worker.disk import Disk
from dataflow.runtime.engine import View
from persistence.change_feeds import FeedDefinition
from persistence.shard_store import ShardStore

PENDING_KEYS_MAX = 100_000
PRUNE_PAUSE_S = 0.05

_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class _Followed:
    """`recorded` is the epoch that all is recorded up to, once nothing is pending; `seen` the last that was looked at."""

    view: View
    recorded: int = 0
    seen: int = 0
    pending_keys: int = 0
    pending: int = 0
    is_lost: bool = False
    """Something was not recorded: it is to be compared as a whole."""


class FeedService:
    def __init__(self, store: ShardStore, disk: Disk, views: WorkerViews, hosting: Hosting) -> None:
        self._store = store
        self._disk = disk
        self._views = views
        self._hosting = hosting
        self._followed: dict[int, _Followed] = {}
        self._is_pruning = False
        views.when_shown(self.follow)
        self.handlers: dict[type, Callable[[Peer, int, Any], None]] = {
            KeepFeed: self._keep,
            ForgetFeed: self._forget,
            AskFeeds: self._ask,
            ReadFeed: self._read,
            CountFeed: self._count,
        }

    # --- requests

    def _keep(self, peer: Peer, request: int, message: KeepFeed) -> None:
        self._store.require_room_for_rows()
        store, limits = self._store, (message.seconds, message.bytes_max, message.catalog_version)

        def keep() -> None:  # in the order of all writes: the epochs from the next on are recorded
            known = store.feeds.definitions.get(message.feed)
            if known is not None and known.catalog_version > message.catalog_version:
                return
            floor = -1 if message.view else store.epoch
            store.feeds.keep(FeedDefinition(message.feed, message.view, *limits, floor))

        def kept(_: None) -> None:
            self.follow()
            peer.send(Acknowledged(), request)

        self._disk.aside(keep, kept)

    def _forget(self, peer: Peer, request: int, message: ForgetFeed) -> None:
        def forgotten(_: None) -> None:
            self.follow()
            peer.send(Acknowledged(), request)

        self._disk.aside(lambda: self._store.feeds.forget(message.feed), forgotten)

    def _ask(self, peer: Peer, request: int, message: AskFeeds) -> None:
        """What was shown before is recorded by then."""
        self.follow()

        def answer(_: None) -> None:
            peer.send(KeptFeeds([self._state(each) for each in self._store.feeds.definitions.values()]), request)

        if any(each.pending for each in self._followed.values()):
            self._disk.aside(lambda: None, answer)
        else:
            answer(None)

    def _state(self, definition: FeedDefinition) -> FeedState:
        size = self._store.feeds.bytes_of(definition.feed)
        limits = definition.seconds, definition.bytes_max
        if not definition.view:
            shown = self._hosting.shown_epoch
            return FeedState(definition.feed, definition.floor, shown, size, *limits, True, b"")
        followed = self._followed.get(definition.feed)
        latest = definition.floor if followed is None else max(followed.recorded, definition.floor)
        return FeedState(definition.feed, definition.floor, latest, size, *limits, followed is not None, definition.view)

    def _read(self, peer: Peer, request: int, message: ReadFeed) -> None:
        if self._is_gone(peer, request, message.feed, message.since - (message.after >= 0)):
            return
        peer.send(FeedRead(*self._store.feeds.read(message.feed, message.since, message.until, message.after)), request)

    def _count(self, peer: Peer, request: int, message: CountFeed) -> None:
        if self._is_gone(peer, request, message.feed, message.since):
            return
        counts = self._store.feeds.counts(message.feed, message.since, message.until, message.rows_max)
        peer.send(FeedCounts(counts), request)

    def _is_gone(self, peer: Peer, request: int, feed: int, since: int) -> bool:
        definition = self._store.feeds.definitions.get(feed)
        if definition is not None and 0 <= definition.floor <= since:
            return False
        peer.send(FeedGone(-1 if definition is None else definition.floor), request)
        return True

    # --- views

    def follow(self) -> None:
        """Record what the views show and did not before."""
        definitions = self._store.feeds.views()
        if not (definitions or self._followed) or self._store.shadow is not None:
            return
        shown = self._views.shown()
        if shown is None:
            return
        hosted = {each.feed: shown.views.get(each.view) for each in definitions}
        views = {feed: each.view for feed, each in hosted.items() if each is not None and each.view.is_full}
        for feed in self._followed.keys() - views.keys():
            shown.publisher.watched.pop(self._followed.pop(feed).view.number, None)
        for feed, view in views.items():
            self._follow(feed, view, shown)

    def _follow(self, feed: int, view: View, shown: ShownViews) -> None:
        followed = self._followed.get(feed)
        changed = shown.publisher.watched.get(view.number)
        is_whole = followed is None or followed.view is not view or changed is None or followed.is_lost
        if followed is not None and is_whole and followed.pending:
            return  # it is compared when what came before is recorded
        if followed is None or followed.view is not view:
            followed = self._followed[feed] = _Followed(view, recorded=0 if followed is None else followed.recorded)
        keys = list(view.arrangement.index) if is_whole else list(changed or ())
        shown.publisher.watched[view.number] = set()
        followed.seen, followed.is_lost = shown.epoch, False
        if followed.pending_keys + len(keys) > PENDING_KEYS_MAX and followed.pending:
            followed.is_lost = True
        elif keys or is_whole:
            rows = {_encode(key): [_encode(row) for row in shown.engine.rows(view, key) or ()] for key in keys}
            self._record(feed, followed, shown.epoch, rows, is_whole)
        elif not followed.pending:
            followed.recorded = shown.epoch

    def _record(self, feed: int, followed: _Followed, epoch: int, rows: dict[bytes, list[bytes]], is_whole: bool) -> None:
        followed.pending += 1
        followed.pending_keys += len(rows)

        def recorded(_: None) -> None:
            followed.pending -= 1
            followed.pending_keys -= len(rows)
            followed.recorded = epoch
            if not followed.pending:
                if followed.is_lost:
                    self.follow()
                else:
                    followed.recorded = followed.seen

        self._disk.aside(lambda: self._store.feeds.follow_view(feed, epoch, rows, is_whole), recorded)

    # --- time

    def check(self) -> None:
        """Called now and then: what is too old goes, and feeds of what is not there any more."""
        feeds = self._store.feeds
        if not feeds.definitions or not self._store.can_delete or self._is_pruning:
            return
        self.follow()
        tables, version = self._hosting.epochs.tables, self._hosting.catalog_version
        gone = [each.feed for each in feeds.definitions.values() if each.catalog_version <= version and each.feed not in tables]
        for feed in gone:
            self._disk.aside(partial(feeds.forget, feed))
        self._prune()

    def _prune(self) -> None:
        self._is_pruning = True
        self._disk.aside(self._store.feeds.prune, self._pruned)

    def _pruned(self, more: bool) -> None:
        self._is_pruning = False
        if more:
            asyncio.get_running_loop().call_later(PRUNE_PAUSE_S, self.check)
