"""The vote dataflow on several shards counts what it counts on one."""

from __future__ import annotations

from collections import Counter

import pytest

from backend.bench.dataflow import Vote, votes
from backend.bench.dataflow_workers import VoteOfShards
from dataflow.runtime.graph import Graph
from dataflow.runtime.table_step import TIMED_EVERY


def counted(*graphs: Graph) -> Counter[str]:
    found: Counter[str] = Counter()
    for graph in graphs:
        found.update({each.label: each.rows_in for each in graph.operators.values()})
    return found


@pytest.mark.parametrize("shard_count", [2, 3])
def test_rows_and_time_of_operators_are_counted_on_all_shards(shard_count: int) -> None:
    one, several = Vote(50), VoteOfShards(50, shard_count)
    one.fill()
    graphs = [worker.engine.graph for worker in several.workers]
    rows = votes(4 * TIMED_EVERY, 40)
    for row in rows:
        one.queue = [(row, 1)]
        one.run_epoch()
        several.run_epoch(several.split([row]))
    assert counted(*graphs) == counted(one.engine.graph)
    assert sum(each.seconds for graph in graphs for each in graph.operators.values()) > 0
