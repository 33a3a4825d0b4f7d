"""Without partial state a view has every key from the beginning, and the same rows."""

from __future__ import annotations

from backend.bench.dataflow import STORIES_WITH_VOTE_COUNT, VOTES_TABLE, Stories
from dataflow.runtime.engine import Engine


def test_a_view_without_partial_state_is_full_and_follows_changes() -> None:
    full, partial = Engine(Stories(10), partial=False), Engine(Stories(10))
    everything, some = (engine.add_view(STORIES_WITH_VOTE_COUNT, (0,)) for engine in (full, partial))
    assert everything.is_full and everything.reason == "partial state is switched off" and not some.is_full
    assert len(everything.arrangement.index) == 10 and not some.arrangement.index
    partial.upquery(some, [(3,), (4,)])
    for engine in (full, partial):
        engine.apply(1, {VOTES_TABLE: [((1, 1, 3), 1), ((2, 1, 3), 1), ((3, 1, 4), 1)]})
    for story, votes in ((3, 2), (4, 1)):
        found = full.upquery(everything, [(story,)])
        assert found == partial.upquery(some, [(story,)])
        assert list(found[0].rows) == [(story, f"title {story}", votes)]
