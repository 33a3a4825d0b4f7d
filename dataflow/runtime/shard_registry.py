"""The views of one shard among several, by name: those that are kept, and those that have ended because they have missed changes.

A view that has ended is not read any more, but stays in the graph until shard 0 has all shards remove it, because operators
have the same numbers on all shards only as long as all make the same transitions.
"""

from __future__ import annotations

from dataflow.runtime.engine import Engine, View
from dataflow.runtime.loading import OverBudget
from dataflow.runtime.operator import Operator, below
from dataflow.runtime.shard_messages import StartView, ViewName, ViewsEnded
from dataflow.runtime.shard_programs import Programs


class ShardRegistry:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.views: dict[ViewName, View] = {}
        self.starts: dict[ViewName, StartView] = {}
        """How they were defined."""
        self.ended: dict[ViewName, View] = {}

    def add(self, start: StartView) -> None:
        name = start.view
        if name not in self.views and name not in self.ended:  # it may have been asked for twice before it came
            self.views[name] = self._engine.add_view(start.node, start.key, start.order, full=start.full)
            self.starts[name] = start

    def remove(self, name: ViewName) -> None:
        self.starts.pop(name, None)
        view = self.views.pop(name, None) or self.ended.pop(name, None)
        if view is not None:
            self._engine.remove_view(view)

    def end_failed(self, programs: Programs) -> list[ViewsEnded]:
        """The views that dead operators make have missed changes: those that were not known to have."""
        errors, programs.errors = programs.errors, []
        # More rows than can be had at once may be fewer the next time.
        found = [ViewsEnded(self.made_from(each), error, not isinstance(error, OverBudget)) for each, error in errors]
        blamed = {name for each in found for name in each.views}
        others = tuple([name for name, view in self.views.items() if view.operator.number in programs.dead and name not in blamed])
        for name in (*blamed, *others):
            self.ended[name] = self.views.pop(name)
            del self.starts[name]
        return [*found, ViewsEnded(others)] if others else found

    def made_from(self, operator: Operator) -> tuple[ViewName, ...]:
        return tuple([name for name, view in self.views.items() if operator.number in below(view.operator)])
