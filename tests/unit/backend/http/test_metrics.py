"""The metrics are what their document says, in a form that Prometheus reads, and the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from backend.http.metrics import exposition
from backend.http.shown import ShownView
from backend.processes.statement_counts import EDGES_S, KindCount
from tests.tidy.repository import ROOT

BINS = [1] * (len(EDGES_S) + 1)
SHARD = {
    "shard": 0, "epoch": 7, "transactions": 5, "reads": 6, "open_scans": 0, "views": 1, "view_bytes": 10, "stored_bytes": 20,
    "resident_bytes": 30, "longest_hold_ms": 1.5, "durations": dict.fromkeys(("epoch", "write", "fill"), (2.0, BINS)),
}  # fmt: skip
STATUS: dict[str, Any] = {"ready": True, "shards": [SHARD, {"shard": 1, "error": "no answer"}], "processes": [{"name": "http", "restarts": 2}]}
VIEW = ShownView(
    "ab", "Join#1", "", ["d.t"], ["a"], "partial", "", 3, 4, 500, 10, 90, 5, 2, [], datetime.now(UTC), [], 0.5, BINS
)


def shown() -> dict[str, Any]:
    content, kind = exposition("", STATUS, 100, [KindCount("select", 9, 6, 2, 1, 1, 0.5, BINS)], [VIEW])
    assert kind.startswith("text/plain")
    return {each.name: each for each in text_string_to_metric_families(content.decode())}


def test_every_metric_has_a_kind_a_meaning_and_is_documented() -> None:
    found = shown()
    assert all(each.documentation and each.type in ("gauge", "counter", "histogram") for each in found.values())
    named = {name + ("_total" if each.type == "counter" else "") for name, each in found.items()}
    assert named == set(re.findall(r"`(millrace_\w+)`", (ROOT / "docs" / "metrics.md").read_text()))


def test_values_are_those_of_the_status() -> None:
    found = shown()
    assert [(each.labels["shard"], each.value) for each in found["millrace_shard_up"].samples] == [("0", 1.0), ("1", 0.0)]
    assert [each.value for each in found["millrace_shard_epoch"].samples] == [7.0]
    reads = {each.labels["answered"]: each.value for each in found["millrace_reads"].samples}
    assert reads == {"memory": 6.0, "view": 2.0, "tables": 1.0}
    hits = {each.labels["where"]: each.value for each in found["millrace_view_hits"].samples}
    assert hits == {"memory": 90.0, "worker": 10.0}
    buckets = [each.value for each in found["millrace_shard_write_seconds"].samples if each.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == len(BINS)
    [total] = [each.value for each in found["millrace_statement_seconds"].samples if each.name.endswith("_sum")]
    assert total == 0.5


def test_strangers_see_whether_clients_can_connect() -> None:
    content, _ = exposition("", {"ready": False})
    assert [line for line in content.decode().splitlines() if not line.startswith("#")] == ["millrace_ready 0.0"]


def test_openmetrics_is_given_to_who_asks_for_it() -> None:
    content, kind = exposition("application/openmetrics-text; version=1.0.0", STATUS)
    assert "openmetrics" in kind and content.endswith(b"# EOF\n")


def test_the_dashboard_asks_for_metrics_that_are_there() -> None:
    board = json.loads((ROOT / "deploy" / "grafana.json").read_text())
    asked = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"millrace_\w+", target["expr"])}
    samples = {sample.name for each in shown().values() for sample in each.samples}
    assert asked and asked <= samples
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
