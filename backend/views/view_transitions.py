"""Transitions: all shards add and remove views in the same epoch, and take views over to later versions of their tables.

Shard 0 takes the requests, decides once for all shards whether a view is kept whole, and whether it is filled beside the epochs, and
hands transitions to the coordinator. Every shard knows which views it has, and the versions of the tables that they read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from backend.network.messages import Acknowledged, Message, UnknownView
from backend.network.program_messages import AddView
from backend.network.view_messages import EndedViews, FillReported, RemoveView, ViewsKept
from backend.views.hosted_view import HostedView, definition_of
from backend.views.known_view import KnownView, known_view
from backend.views.set_aside import SetAsideViews
from backend.views.small_tables import SmallTables, is_too_large
from backend.views.view_changes import Answering
from backend.views.view_filling import ROWS_AT_ONCE_MAX
from backend.views.view_restarting import stored_bytes
from controller.catalog import decode_table, encode_table
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.runtime.engine import Engine
from dataflow.runtime.fill_lead import FillLead
from dataflow.runtime.kept_views import resumable
from dataflow.runtime.loading import has_new_full_state
from dataflow.runtime.shard_fill import BeginFill, EndFill, FillTransition, FollowFill, ResumeFill
from dataflow.runtime.shard_messages import EndView, StartView, Transition, ViewName
from dataflow.schema import Table
from persistence.shard_store import ShardStore
from persistence.table_source import TableSource

BYTES_AT_ONCE_MAX = 1 << 20
"""More than this of a table on a shard is not read within one epoch, for which all wait."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_decode_transition = msgspec.msgpack.Decoder(tuple[str, bytes, str]).decode
"""What is done, the view, and why it is kept whole."""
_decode_view = msgspec.msgpack.Decoder(AddView).decode
_decode_views = msgspec.msgpack.Decoder(list[tuple[AddView, str]]).decode
_decode_resumed = msgspec.msgpack.Decoder(tuple[int, frozenset[int], bytes]).decode
_decode_outliving = msgspec.msgpack.Decoder(tuple[list[bytes], dict[int, int], list[bytes]]).decode


@dataclass(frozen=True, slots=True)
class OutliveTables:
    """Tables have changed, and these views use nothing of what has: from this epoch on they are views of the tables as they are now."""

    views: list[bytes]
    versions: Mapping[int, int]
    tables: Mapping[int, Table]


def decoded(transition: bytes) -> tuple[list[KnownView], Transition | FillTransition | OutliveTables]:
    """The views that come by it, and what is to be done."""
    kind, body, full = _decode_transition(transition)
    if kind == OutliveTables.__name__:
        names, versions, tables = _decode_outliving(body)
        return [], OutliveTables(names, versions, {table.id: table for table in map(decode_table, tables)})
    if kind == RemoveView.__name__:
        return [], EndView(body)
    if kind == FollowFill.__name__:
        return [], FollowFill()
    if kind == EndFill.__name__:
        return [], EndFill(bool(body))
    epoch, lost = 0, frozenset[int]()
    if kind == ResumeFill.__name__:
        epoch, lost, body = _decode_resumed(body)
    views = [(_decode_view(body), full)] if kind == AddView.__name__ else _decode_views(body)
    known = [known_view(message) for message, _ in views]
    starts = tuple([StartView(each.name, *each.definition, reason) for each, (_, reason) in zip(known, views)])
    if kind == ResumeFill.__name__:
        return known, ResumeFill(starts, epoch, lost)
    return known, BeginFill(starts) if kind == BeginFill.__name__ else starts[0]


def encoded_views(views: Sequence[tuple[AddView, str]]) -> bytes:
    """The definitions of views, and why they are kept whole."""
    return _encode(views)


class ViewTransitions:
    """`change` has all shards make a transition, and is False while one is missing; `engine` is the one that answers."""

    def __init__(
        self, store: ShardStore, shard_count: int, memory_bytes: int, change: Callable[[bytes], bool], engine: Callable[[], Engine]
    ) -> None:
        self._store = store
        self._shard_count = shard_count
        self._memory_bytes = memory_bytes
        self._change = change
        self._engine = engine
        self.known: dict[bytes, KnownView] = {}
        self.hosted: dict[bytes, HostedView] = {}
        self.aside = SetAsideViews()
        self._small = SmallTables()
        self._adding: dict[bytes, tuple[KnownView, list[tuple[Answering, int]]]] = {}
        self._filling: dict[bytes, tuple[KnownView, str]] = {}
        """Those that are filled beside the epochs, or will be, and why they are kept whole."""
        self._tables: dict[int, Table] = {}
        """Those that have changed since this worker began, as they are now."""
        self._is_behind = False
        """Whether there may be views over earlier versions of tables."""
        self._kept: dict[int, ViewsKept] = {}
        """What each shard has kept of views that have ended."""
        self._lead = FillLead(shard_count, self._begin_fill, lambda: self._do(FollowFill), lambda wanted: self._do(EndFill, b"1" * wanted))

    def keep_small(self, rows_max: int) -> None:
        self._small.rows_max = rows_max // self._shard_count

    def forget(self) -> None:
        """All views are gone; who waits for one is told so."""
        self.known.clear()
        self.hosted.clear()
        self._filling.clear()
        self._lead.forget()
        adding, self._adding = self._adding, {}
        for _, waiting in adding.values():
            _answer(waiting, UnknownView())

    def add(self, peer: Answering, request: int, message: AddView, versions: Mapping[int, int]) -> None:
        """Have a view kept; answered when it can be asked, or if it cannot be: or not yet, because it is being filled."""
        if message.view in self.hosted:
            peer.send(Acknowledged(), request)
            return
        if message.view in self._adding:
            self._adding[message.view][1].append((peer, request))
            return
        known = known_view(message)
        if known.is_stale(versions) or message.view in self.aside or message.view in self._filling:
            peer.send(UnknownView(), request)
            return
        source = TableSource(self._store.view(), is_all=False)
        known.learn(source)
        full = self._fullness(known, source)
        if full is not None and self._takes_long(known, full, source):
            self._filling[message.view] = (known, full)
            self._lead.want(message.view)
            full = None
        if full is None or not self._change(_encode((AddView.__name__, _encode(message), full))):
            peer.send(UnknownView(), request)
        else:
            self._adding[message.view] = (known, [(peer, request)])

    def kept_reported(self, kept: ViewsKept, versions: Mapping[int, int]) -> None:
        """When all shards have said what they have kept, views go on from there."""
        self._kept[kept.report.shard] = kept
        reports = [each.report for each in self._kept.values()]
        if len(reports) < self._shard_count or len({each.generation for each in reports}) > 1 or self._lead.is_busy:
            return
        resumed = resumable(reports)
        if resumed is None:
            return
        epoch, lost = resumed
        [first, *_] = [each.views for each in self._kept.values() if each.report.shard not in lost]
        views = [each for each in _decode_views(first) if each[0].view not in self.aside and not known_view(each[0]).is_stale(versions)]
        if views and self._change(_encode((ResumeFill.__name__, _encode((epoch, lost, _encode(views))), ""))):
            log.info("%d views go on from epoch %d, but for shards %s", len(views), epoch, sorted(lost))
            self._filling |= {message.view: (known_view(message), full) for message, full in views}
            self._lead.resume(tuple([message.view for message, _ in views]))

    def _takes_long(self, known: KnownView, full: str, source: TableSource) -> bool:
        """Whether many rows have to be read before the view can be asked."""
        if all(source.is_small(table, ROWS_AT_ONCE_MAX, BYTES_AT_ONCE_MAX) for table in known.layouts):
            return False
        planned = Engine(source, distributed=True)
        planned.add_view(*known.definition, full=full)
        return has_new_full_state(self._engine().graph, planned.graph)

    def _begin_fill(self, views: tuple[ViewName, ...]) -> bool:
        coming = {name: (known.message, "") for name, known in self.known.items()}
        coming |= {name: (known.message, full) for name, (known, full) in self._filling.items()}
        if self._do(BeginFill, _encode([coming[bytes(each)] for each in views if bytes(each) in coming])):
            return True
        for each in views:
            self._filling.pop(bytes(each), None)
        return False

    def keys_wanted(self, views: Iterable[bytes]) -> None:
        """Some shard has keys of these views that are to be filled beside the epochs."""
        for name in views:
            if name in self.hosted:
                self._lead.want(name, is_more=True)

    def _do(self, transition: type[FillTransition | OutliveTables], body: bytes = b"") -> bool:
        return self._change(_encode((transition.__name__, body, "")))

    def fill_reported(self, report: FillReported, last_fill: int) -> None:
        """A shard's part of a fill is where it was to be, or has failed; `last_fill` is the last that has begun here."""
        if report.fill < last_fill:  # it is over
            return
        if not report.reason:
            self._lead.reached(report.shard, report.fill, report.behind)
        else:
            log.warning("a fill has failed on shard %d: %s", report.shard, report.reason)
            self._blame(self._filling.keys() & {*report.suspects}, report.reason, report.is_certain)
            for name in self._lead.under_way:
                self._filling.pop(bytes(name), None)
            self._lead.failed()

    def _fullness(self, known: KnownView, source: TableSource) -> str | None:
        """Why the view is kept whole, '' if it may be partial; None if there is no room for it. All shards have about the same."""

        def room() -> int:
            return self._memory_bytes - self._engine().measure().full_bytes

        if is_too_large(known.definition, source, stored_bytes(self._store, known.tables), room, self._shard_count):
            return None
        return self._small.reason(known.definition, source)

    def landed(self, versions: Mapping[int, int], is_filling: bool) -> None:
        """All shards are at the epoch, so whoever asked for a view in it can look there."""
        added = [name for name in self._adding if name in self.hosted]
        for name in added:
            _answer(self._adding.pop(name)[1], Acknowledged())
        filled = [name for name in self._filling if name in self.hosted]
        for name in filled:
            del self._filling[name]
        self._lead.landed(not is_filling)
        if added or filled or self._is_behind:
            self._follow_tables(versions)

    def kept_and_outgrown(self) -> tuple[list[bytes], list[bytes]]:
        """The views that are there or on the way, and those that were kept whole and have grown."""
        return [*{**self.known, **self._adding, **self._filling}], self._small.outgrown(self.hosted)

    def remove(self, name: bytes) -> None:
        """Have a view go, whether it is there or on the way."""
        if name in self.known or name in self._filling or name in self._adding:
            self._filling.pop(name, None)
            self._remove(name)

    def tables_changed(self, versions: Mapping[int, int], tables: Mapping[int, Table]) -> None:
        """Have the views over changed tables go, or go on if they use nothing of what has changed."""
        self._tables.update(tables)
        self._follow_tables(versions)

    def _follow_tables(self, versions: Mapping[int, int]) -> None:
        """Views that cannot go on go first: others may know their tables by an index that is gone."""
        for name in [name for name, (known, _) in self._filling.items() if known.is_stale(versions)]:
            del self._filling[name]
            self._lead.remove(name)
        stale = {name: known for name, known in self.known.items() if known.is_stale(versions)}
        self._is_behind = bool(stale)
        ending = [name for name, known in stale.items() if name not in self.hosted or known.current(versions, self._tables) is None]
        for name in ending:
            self._remove(name)
        if stale and not ending:
            read = frozenset().union(*[known.tables for known in stale.values()])
            named = [each for known in stale.values() for each in known.message.named]
            tables = [encode_table(self._tables[each]) for each in read if each in self._tables]
            self._lead.begin_again(stale)
            self._do(OutliveTables, _encode((list(stale), {each: versions[each] for each in (*read, *named)}, tables)))

    def outlive(self, change: OutliveTables, source: TableSource) -> None:
        """On every shard: these views are of the changed tables now."""
        for name in change.views:
            if name in self.hosted:
                known = self.known[name].current(change.versions, change.tables)
                assert known is not None, "shard 0 has seen that it can go on"
                known.learn(source)
                self.known[name] = self.hosted[name].known = known

    def _remove(self, name: bytes) -> None:
        self._lead.remove(name)
        self._change(_encode((RemoveView.__name__, name, "")))

    def has_stale(self, versions: Mapping[int, int]) -> bool:
        """Whether views over changed tables are there, or about to be."""
        known = [*self.known.values(), *[each for each, _ in (*self._adding.values(), *self._filling.values())]]
        return any(each.is_stale(versions) for each in known)

    def ended(self, ended: EndedViews) -> None:
        """These views have missed changes on some shard: all shards remove them."""
        for name, definition in ended.views:
            if ended.reason:
                self._blame([name], ended.reason, ended.is_certain, definition)
            self._filling.pop(name, None)
            if name in self._adding:
                _answer(self._adding.pop(name)[1], UnknownView())
            self._remove(name)

    def blame(self, failed: ViewsFailed) -> None:
        """Set aside who is to blame. If that is not known, nobody is."""
        self._blame(failed.suspects, failed.reason, failed.is_certain)

    def _blame(self, suspects: Iterable[bytes], reason: str, is_certain: bool, definition: str = "") -> None:
        coming: dict[bytes, KnownView] = {name: known for name, (known, _) in (*self._adding.items(), *self._filling.items())}
        views = self.known | coming
        for name in views.keys() & {*suspects}:
            hosted = self.hosted.get(name)
            self.aside.blame(views[name], reason, is_certain, definition if hosted is None else definition_of(hosted.view))


def _answer(waiting: list[tuple[Answering, int]], message: Message) -> None:
    for peer, request in waiting:
        peer.send(message, request)
