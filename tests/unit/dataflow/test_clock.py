"""What leaves when memory is short: views and the state below them, in step."""

from __future__ import annotations

from backend.bench.dataflow import STORIES_WITH_VOTE_COUNT, Stories
from dataflow.engine import Engine

KEYS = 2_000


def test_a_view_over_other_state_keeps_its_share_of_keys() -> None:
    engine = Engine(Stories(KEYS))
    view = engine.add_view(STORIES_WITH_VOTE_COUNT, (0,))
    engine.upquery(view, [(key,) for key in range(KEYS)])
    full_bytes = engine.measure().total_bytes
    arrangements = [each for operator in engine.graph.operators.values() for each in operator.arrangements()]
    assert len(arrangements) > 1, "there is state below the view"
    view.arrangement.referenced.clear()
    engine.reference(view, list(range(KEYS // 10)))
    report = engine.enforce(full_bytes // 5)
    assert report.total_bytes <= full_bytes // 5
    assert len(view.arrangement.index) > KEYS * 0.15, "a fifth of all, or nearly"
    assert all(key in view.arrangement.index for key in range(KEYS // 10)), "what was read is spared"
    engine.validate()
