"""The live graph and the transitions, made of what workers and adapters tell: all shards are one picture."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from backend.http.observation import Picture
from backend.http.shown import Filling, ShownGraph, ShownNode, ShownView, Transition, Transitions
from backend.network.view_messages import ArrangementStatus, HostedViews, NodeStatus, ViewStatus
from backend.processes.statement_counts import StatementCount, added, quantiles
from controller.catalog import Catalog

TRANSITIONS_MAX = 500


def graph(picture: Picture, statements: Iterable[StatementCount], catalog: Catalog) -> ShownGraph:
    nodes = _together(picture)
    before = {} if picture.before is None else _together(picture.before)
    seconds = 0.0 if picture.before is None else picture.moment - picture.before.moment
    arrangements: dict[str, list[ArrangementStatus]] = {}
    for _, hosted in picture.hosted:
        for each in hosted.arrangements:
            arrangements.setdefault(each.node, []).append(each)
    shown = [_node(each, before.get(each.node), seconds, arrangements.get(each.node, [])) for each in nodes.values()]
    return ShownGraph(time.time() - picture.moment, picture.took_s, shown, _views(picture, statements, catalog))


def _together(picture: Picture) -> dict[str, NodeStatus]:
    found: dict[str, NodeStatus] = {}
    for _, hosted in picture.hosted:
        for each in hosted.nodes:
            known = found.get(each.node)
            rows, seconds = (0, 0.0) if known is None else (known.rows, known.seconds)
            found[each.node] = NodeStatus(
                each.node, each.operation, each.inputs, each.users, each.views, rows + each.rows, seconds + each.seconds
            )
    return found


def _node(node: NodeStatus, before: NodeStatus | None, seconds: float, kept: Sequence[ArrangementStatus]) -> ShownNode:
    rows = busy = 0.0
    if before is not None and seconds > 0 and node.rows >= before.rows:
        rows, busy = (node.rows - before.rows) / seconds, max(node.seconds - before.seconds, 0.0) / seconds
    states = {"full" if each.reason else "partial" for each in kept}
    return ShownNode(
        node.node, node.operation, node.operation.removeprefix("table ") if not node.inputs else "", list(dict.fromkeys(node.inputs)),
        node.views, node.rows, rows, busy, sum(each.keys for each in kept), sum(each.size_bytes for each in kept),
        " and ".join(sorted(states)), [_index(each) for each in kept],
    )  # fmt: skip


def _index(each: ArrangementStatus) -> str:
    return f"by {each.shown_columns}: {'full, ' + each.reason if each.reason else 'partial'}, {each.keys:,} keys, {each.size_bytes:,} bytes"


def _views(picture: Picture, statements: Iterable[StatementCount], catalog: Catalog) -> list[ShownView]:
    queries: dict[bytes, list[str]] = {}
    shared: Counter[bytes] = Counter()
    for statement in statements:
        for name in statement.views:
            queries.setdefault(name, []).append(statement.text)
            # The views of one statement differ in constants; which of them was read is not counted.
            shared[name] += statement.hits // len(statement.views)
    merged: dict[bytes, ShownView] = {}
    for _, hosted in picture.hosted:
        for each in hosted.views:
            known = merged.get(each.name)
            if known is None:
                merged[each.name] = _view(each, queries.get(each.name, []), shared[each.name], catalog)
                continue
            known.keys += each.keys
            known.rows += each.rows
            known.bytes += each.size_bytes
            known.hits += each.hits
            known.misses += each.misses
            known.evictions += each.evictions
            known.fill_seconds += each.fill_seconds
            known.fill_bins = added(known.fill_bins, each.fill_bins)
    for view in merged.values():
        [p95] = quantiles(view.fill_bins, (0.95,))
        view.fill_p95_ms = None if p95 is None else round(1000 * p95, 4)
    return list(merged.values())


def _view(view: ViewStatus, queries: list[str], shared_hits: int, catalog: Catalog) -> ShownView:
    return ShownView(
        view.name.hex(), view.node, view.definition, table_names(view.tables, catalog), list(view.key_names),
        state_of(view), view.reason, view.keys, view.rows, view.size_bytes, view.hits, shared_hits, view.misses, view.evictions,
        list(view.names), datetime.fromtimestamp(int(view.since), UTC), queries,
        view.fill_seconds, list(view.fill_bins),
    )  # fmt: skip


def state_of(view: ViewStatus) -> str:
    return "set aside" if view.is_set_aside else "full" if view.reason else "partial"


def table_names(tables: Iterable[int], catalog: Catalog) -> list[str]:
    found = [catalog.tables[each] for each in tables if each in catalog.tables]
    return [f"{each.database}.{each.name}" for each in found]


class TransitionLog:
    """What has changed from each picture to the next, and in the catalog."""

    def __init__(self) -> None:
        self._views: dict[bytes, ViewStatus] | None = None
        self._past: deque[Transition] = deque(maxlen=TRANSITIONS_MAX)
        self._version = 0

    def follow(self, picture: Picture, catalog: Catalog) -> None:
        views = {each.name: each for _, hosted in picture.hosted for each in hosted.views}
        known = self._views or {}
        if self._version and catalog.version != self._version:
            self._add(picture.moment, f"definitions changed: catalog version {catalog.version}", "", [], "")
        self._version = catalog.version
        for name, view in views.items():
            before = known.get(name)
            if before is None or state_of(before) != state_of(view):
                moment = view.since if before is None and view.since else picture.moment
                self._add(moment, _came(view), name.hex(), table_names(view.tables, catalog), view.definition)
        for name, view in known.items():
            if name not in views:
                self._add(picture.moment, "is not maintained any more", name.hex(), table_names(view.tables, catalog), view.definition)
        self._views = views

    def _add(self, moment: float, what: str, view: str, tables: list[str], definition: str) -> None:
        self._past.append(Transition(datetime.fromtimestamp(moment, UTC), what, view, tables, definition))

    def shown(self, picture: Picture, catalog: Catalog) -> Transitions:
        filling = [
            Filling(shard, each.view.hex(), table_names(each.tables, catalog), each.keys, each.rows, each.round, each.behind)
            for shard, hosted in picture.hosted
            for each in hosted.fills
        ]
        return Transitions(filling, sorted(self._past, key=lambda each: each.time, reverse=True))


def _came(view: ViewStatus) -> str:
    if view.is_set_aside:
        return f"is set aside: {view.reason}"
    return f"is maintained, full: {view.reason}" if view.reason else "is maintained, partial"


def kept_keys(hosted: Iterable[tuple[int, HostedViews]], name: bytes) -> int | None:
    """How many keys of the view there are; None if there is no such view."""
    found = [view.keys for _, each in hosted for view in each.views if view.name == name]
    return sum(found) if found else None

