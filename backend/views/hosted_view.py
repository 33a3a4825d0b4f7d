"""A view that a worker keeps, and what is told of it: sizes are measured on samples."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from backend.network.view_messages import ArrangementStatus, FillStatus, HostedViews, NodeStatus, ViewStatus
from backend.processes.durations import FILLS, Durations
from backend.views.known_view import KnownView
from backend.views.view_definition import keys_decoder
from backend.views.view_range import RangeDecoder
from dataflow.expressions.source import Key
from dataflow.plan.node import Columns
from dataflow.runtime.engine import View
from dataflow.runtime.explanation import column_name, does, explain, listed
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.memory import Meter
from dataflow.values.types import Row

ROWS_SAMPLE_KEYS = 1000


@dataclass(slots=True)
class HostedView:
    """`since` is when the view was first maintained, here or by a predecessor."""

    known: KnownView
    view: View
    since: float
    keys: msgspec.msgpack.Decoder[list[Row]]
    ranges: RangeDecoder
    hits: int = 0
    misses: int = 0
    too_large: set[Key] = field(default_factory=set)
    """Keys that there is not enough memory for."""
    fills: Durations | None = None
    """How long upqueries took; None before the first."""

    def filled(self, seconds: float) -> None:
        """A lookup missed, and so long after it its keys were there."""
        if self.fills is None:
            self.fills = Durations()
        self.fills.took(seconds)
        FILLS.took(seconds)

    @property
    def tables(self) -> frozenset[int]:
        return self.known.tables

    @property
    def is_full(self) -> bool:
        return self.view.is_full

    @property
    def evictions(self) -> int:
        return self.view.arrangement.evictions


def status_of(
    hosted_views: Mapping[bytes, HostedView],
    fills: Sequence[FillStatus] = (),
    groups: Callable[[View], tuple[Columns, int]] = lambda view: ((), 0),
    meter: Meter | None = None,
) -> HostedViews:
    """The views and all that is kept for them, and what is being filled. `groups` says which columns have groups of keys in common.

    To measure everything takes half a second: a `meter` remembers what it has measured.
    """
    started = time.perf_counter()
    meter = meter or Meter()
    views = [_view_status(name, hosted, meter, groups(hosted.view)) for name, hosted in hosted_views.items()]
    operators: dict[int, Operator] = {}
    waiting = [hosted.view.operator for hosted in hosted_views.values()]
    while waiting:
        operator = waiting.pop()
        if operator.number not in operators:
            operators[operator.number] = operator
            waiting.extend(operator.inputs)
    kept = [(operator, each) for _, operator in sorted(operators.items()) for each in _arrangements(operator)]
    arrangements = [_arrangement_status(operator, each, meter) for operator, each in kept]
    ends = Counter(hosted.view.operator.number for hosted in hosted_views.values())
    nodes = [_node_status(operator, ends[number]) for number, operator in sorted(operators.items())]
    return HostedViews(views, arrangements, tuple(fills), tuple(nodes), time.perf_counter() - started)


def _node_status(operator: Operator, views: int) -> NodeStatus:
    users = dict.fromkeys(consumer.label for consumer, _ in operator.consumers)
    return NodeStatus(
        operator.label, does(operator), tuple(each.label for each in operator.inputs), tuple(users), views,
        operator.rows_in, operator.seconds,
    )  # fmt: skip


def _arrangements(operator: Operator) -> list[Arrangement]:
    kept = [] if operator.state is None else [operator.state]
    return kept + [each for each in operator.stores.values() if each is not operator.state]


def _arrangement_status(operator: Operator, arrangement: Arrangement, meter: Meter) -> ArrangementStatus:
    return ArrangementStatus(
        operator.label,
        does(operator),
        arrangement.columns,
        arrangement.reason,
        len(arrangement.index),
        meter.bytes_of(arrangement),
        arrangement.users,
        arrangement.views,
        listed(operator.node, arrangement.columns),
    )


def hosted_view(known: KnownView, view: View) -> HostedView:
    types = view.node.types
    keys = keys_decoder(tuple([types[column] for column in view.key]))
    ranges = RangeDecoder([types[column] for column in view.order])
    return HostedView(known, view, known.message.since or time.time(), keys, ranges)


def definition_of(view: View) -> str:
    """What the view does, for people."""
    return " <- ".join(each.does for each in reversed(explain(view)))


def _view_status(name: bytes, hosted: HostedView, meter: Meter, groups: tuple[Columns, int]) -> ViewStatus:
    view, arrangement = hosted.view, hosted.view.arrangement
    sample = list(islice(arrangement.index.values(), ROWS_SAMPLE_KEYS))
    rows = sum(sum(arrangement.bag(value).values()) for value in sample)
    if sample:
        rows = rows * len(arrangement.index) // len(sample)
    return ViewStatus(
        name, definition_of(view), tuple(sorted(hosted.tables)), view.key, view.reason, len(arrangement.index), rows,
        meter.bytes_of(arrangement), hosted.hits, hosted.misses, hosted.evictions,
        hosted.known.names, hosted.since, False, view.operator.label, *groups,
        *((0.0, []) if hosted.fills is None else (hosted.fills.seconds, hosted.fills.bins)),
        tuple([column_name(view.node, each) for each in view.key]),
    )  # fmt: skip
