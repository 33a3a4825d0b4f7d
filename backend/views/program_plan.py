"""The plan of the whole program: the dataflow graph of all its views, without a row.

A new query is planned by adding it to this graph, as workers add it to theirs: operators and arrangements that equal
ones that are there are reused (they are known by what they compute and how it is kept), the others are new. So the plan says which views share what, what is
partial or full and why, and which arrangement serves a view, before any worker hears of the query.

A table that has changed may be known to workers in several layouts (`backend.views.known_view`), whose views share
nothing; the plan knows those of the definitions that it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backend.network.program_messages import AddView, PlannedIndex, PlannedStep, ViewPlan
from backend.views.known_view import known_view
from dataflow.plan.node import Base
from dataflow.runtime.engine import Engine, View
from dataflow.runtime.explanation import does, listed
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from persistence.table_source import TableSource
from persistence.view import StateView

SHOWN_MAX = 3
NAME_DIGITS = 8


class ProgramPlan:
    def __init__(self, is_one_shard: bool = True) -> None:
        self._source = TableSource(_no_rows, is_one_shard)
        self._engine = Engine(self._source, distributed=True)
        self._views: dict[bytes, tuple[View, list[Operator | Arrangement]]] = {}
        self._users: dict[int, set[bytes]] = {}
        """The views that use an operator or an arrangement, by its id; each is there as long as it has users."""

    def add(self, message: AddView, full: str = "") -> ViewPlan:
        """Have a view in the program; `full` is why it is kept whole where it need not be. MillraceError if it cannot be maintained."""
        if message.view in self._views:
            self.remove(message.view)
        known = known_view(message)
        known.learn(self._source)
        view = self._engine.add_view(*known.definition, full=full)
        held = list(_held(view))
        self._views[message.view] = view, held
        for each in held:
            self._users.setdefault(id(each), set()).add(message.view)
        return self._plan(message.view, True)

    def remove(self, name: bytes) -> None:
        if name not in self._views:
            return
        view, held = self._views.pop(name)
        for each in held:
            users = self._users[id(each)]
            users.discard(name)
            if not users:
                del self._users[id(each)]
        self._engine.remove_view(view)

    def look(self, message: AddView) -> ViewPlan:
        """The plan of a view, which may be in the program or not, and stays so."""
        if message.view in self._views:
            return self._plan(message.view, True)
        self.add(message)
        plan = self._plan(message.view, False)
        self.remove(message.view)
        return plan

    @property
    def names(self) -> set[bytes]:
        return {*self._views}

    def reason(self, name: bytes) -> str:
        """Why a view of the program is full; '' if it is partial."""
        return self._views[name][0].reason

    def _plan(self, name: bytes, is_there: bool) -> ViewPlan:
        view, _ = self._views[name]
        steps = list(self._steps(view.operator, name, [view.arrangement], 0))
        return ViewPlan(name, listed(view.node, view.key) if view.key else "", view.reason, is_there, steps)

    def _steps(self, operator: Operator, name: bytes, read: list[Arrangement], depth: int) -> Iterator[PlannedStep]:
        """`read` are the arrangements of its rows that the step above, or the view, looks up."""
        node, state = operator.node, operator.state
        indexes = [
            PlannedIndex(listed(node, each.columns), _kept(operator, each), self._others(each, name))
            for each in {id(each): each for each in read}.values()
            if each is not state
        ]
        # Every view of a table has its rows in common; what they may share is how the rows are found.
        shared = [] if isinstance(node, Base) else self._others(operator, name)
        yield PlannedStep(depth, does(operator), "" if state is None else _kept(operator, state), shared, indexes)
        for each in operator.inputs:
            yield from self._steps(each, name, [held for owner, held in operator.uses if owner is each], depth + 1)

    def _others(self, held: Operator | Arrangement, name: bytes) -> list[bytes]:
        return sorted(self._users[id(held)] - {name})


def _held(view: View) -> Iterator[Operator | Arrangement]:
    """What the view uses, each once."""
    found: dict[int, Operator | Arrangement] = {id(view.arrangement): view.arrangement}
    waiting = [view.operator]
    while waiting:
        operator = waiting.pop()
        if id(operator) not in found:
            found[id(operator)] = operator
            found |= {id(held): held for _, held in operator.uses}
            waiting.extend(operator.inputs)
    yield from found.values()


def _kept(operator: Operator, arrangement: Arrangement) -> str:
    return f"full: {arrangement.reason}" if arrangement.full else f"partial by {listed(operator.node, arrangement.columns)}"


def _no_rows() -> StateView:
    raise AssertionError("a plan reads no rows")


# --- in words


def shared_text(views: Iterable[bytes]) -> str:
    """Nothing, or "shared with …" and the first digits of the views' names."""
    names = [each.hex()[:NAME_DIGITS] for each in views]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return f"shared with {', '.join(names[:SHOWN_MAX])}{more}" if names else ""


def plan_text(plan: ViewPlan) -> str:
    """A view of a transition: what it is made of, which of that was there, and what is partial or full and why."""
    kind = f"full: {plan.reason}" if plan.reason else "partial"
    lines = [f"view {plan.view.hex()[:NAME_DIGITS]}{f' by {plan.key}' if plan.key else ''} is {kind}"]
    for step in plan.steps:
        indent = "    " * (step.depth + 1)
        notes = [each for each in (step.state, shared_text(step.shared_with)) if each]
        lines.append(f"{indent}-> {step.text}" + (f"  [{'; '.join(notes)}]" if notes else ""))
        for index in step.indexes:
            shown = shared_text(index.shared_with) or "new"
            lines.append(f"{indent}   looked up by {index.columns}: {index.state}; {shown}")
    return "\n".join(lines)
