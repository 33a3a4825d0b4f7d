"""The metrics in Prometheus' format, made by prometheus-client when they are asked for. docs/metrics.md lists them; a test compares.

Counts come from processes that may begin anew, as Prometheus' counters may. Of views those with the most keys read are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from backend.http.shown import ShownView
from backend.processes.statement_counts import EDGES_S, KindCount

VIEWS_MAX = 200
BUCKETS = range(2, len(EDGES_S), 3)
"""Every third bin ends a bucket."""

_GAUGES = {
    "epoch": "the last applied epoch",
    "open_scans": "scans that somebody is reading",
    "views": "queries that are maintained",
    "view_bytes": "memory of the maintained queries",
    "stored_bytes": "bytes on disk",
    "resident_bytes": "memory of the worker process",
    "longest_hold_ms": "processor time of the longest moment in which the worker answered nobody",
}
_COUNTERS = {"transactions": "transactions answered", "reads": "read requests"}
_DURATIONS = {
    "epoch": "from writing an epoch until the views show it",
    "write": "writing an epoch to disk, fsync included",
    "fill": "upqueries: from a lookup that missed until its keys were filled",
}
_VIEW_GAUGES = {"keys": "keys that are filled", "bytes": "memory"}
_VIEW_COUNTERS = {"misses": "keys that had to be filled", "evictions": "keys that were evicted"}


def exposition(
    accept: str, status: Mapping[str, Any], shard_memory_bytes: int = 0, kinds: Iterable[KindCount] = (), views: Sequence[ShownView] = ()
) -> tuple[bytes, str]:
    """The metrics, and their content type; for who may not see more than whether clients can connect, only `status` is given."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Found([*_of_status(status, shard_memory_bytes), *_of_statements(list(kinds)), *_of_views(views)]))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Found:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _of_status(status: Mapping[str, Any], shard_memory_bytes: int) -> Iterator[Metric]:
    yield GaugeMetricFamily("millrace_ready", "whether clients can connect", value=float(status["ready"]))
    if "shards" not in status:
        return
    shards = [(str(each["shard"]), each) for each in status["shards"]]
    answering = [(name, each) for name, each in shards if "error" not in each]
    up = GaugeMetricFamily("millrace_shard_up", "whether the shard answers", labels=["shard"])
    for name, each in shards:
        up.add_metric([name], float("error" not in each))
    yield up
    limit = GaugeMetricFamily("millrace_shard_view_limit_bytes", "what the maintained queries may take: its share of --memory", labels=["shard"])
    for name, _ in shards:
        limit.add_metric([name], shard_memory_bytes)
    yield limit
    for field, meaning in _GAUGES.items():
        gauge = GaugeMetricFamily(f"millrace_shard_{field}", meaning, labels=["shard"])
        for name, each in answering:
            gauge.add_metric([name], each[field])
        yield gauge
    for field, meaning in _COUNTERS.items():
        counter = CounterMetricFamily(f"millrace_shard_{field}", f"{meaning} since the worker started", labels=["shard"])
        for name, each in answering:
            counter.add_metric([name], each[field])
        yield counter
    for field, meaning in _DURATIONS.items():
        histogram = HistogramMetricFamily(f"millrace_shard_{field}_seconds", meaning, labels=["shard"])
        for name, each in answering:
            seconds, bins = each["durations"][field]
            histogram.add_metric([name], _buckets(bins), seconds)
        yield histogram
    restarts = CounterMetricFamily("millrace_process_restarts", "how often a process had to be started again", labels=["process"])
    for process in status["processes"]:
        restarts.add_metric([process["name"]], process["restarts"])
    yield restarts


def _of_statements(kinds: list[KindCount]) -> Iterator[Metric]:
    if not kinds:
        return
    count = CounterMetricFamily("millrace_statements", "statements by their first word", labels=["kind"])
    errors = CounterMetricFamily("millrace_statement_errors", "statements that failed", labels=["kind"])
    times = HistogramMetricFamily("millrace_statement_seconds", "time in the server; one read in 64 from shared memory stands for all", labels=["kind"])
    reads = CounterMetricFamily("millrace_reads", "SELECTs by what answered them: memory, view or tables", labels=["answered"])
    for each in kinds:
        count.add_metric([each.kind], each.count)
        errors.add_metric([each.kind], each.errors)
        times.add_metric([each.kind], _buckets(each.bins), each.seconds)
    for answered, field in (("memory", "hits"), ("view", "asked"), ("tables", "evaluated")):
        reads.add_metric([answered], sum(getattr(each, field) for each in kinds))
    yield from (count, errors, times, reads)


def _of_views(views: Sequence[ShownView]) -> Iterator[Metric]:
    if not views:
        return
    most = sorted(views, key=lambda each: -(each.hits + each.shared_hits + each.misses))[:VIEWS_MAX]
    labels = ["view", "tables"]
    hits = CounterMetricFamily("millrace_view_hits", "keys that were there: in shared memory, or asked of the worker", labels=[*labels, "where"])
    for each in most:
        hits.add_metric([each.name, ",".join(each.tables), "memory"], each.shared_hits)
        hits.add_metric([each.name, ",".join(each.tables), "worker"], each.hits)
    yield hits
    for field, meaning in _VIEW_COUNTERS.items():
        counter = CounterMetricFamily(f"millrace_view_{field}", meaning, labels=labels)
        for each in most:
            counter.add_metric([each.name, ",".join(each.tables)], getattr(each, field))
        yield counter
    fills = HistogramMetricFamily("millrace_view_fill_seconds", "upqueries: from a lookup that missed until its keys were filled", labels=labels)
    for each in most:
        if each.fill_bins:
            fills.add_metric([each.name, ",".join(each.tables)], _buckets(each.fill_bins), each.fill_seconds)
    yield fills
    for field, meaning in _VIEW_GAUGES.items():
        gauge = GaugeMetricFamily(f"millrace_view_{field}", meaning, labels=labels)
        for each in most:
            gauge.add_metric([each.name, ",".join(each.tables)], getattr(each, field))
        yield gauge


def _buckets(bins: Sequence[int]) -> list[tuple[str, float]]:
    sums = list(accumulate(bins))
    return [*[(f"{EDGES_S[number]:g}", float(sums[number])) for number in BUCKETS], ("+Inf", float(sums[-1]))]
