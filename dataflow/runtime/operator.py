"""Operators: placed nodes with their arrangements and the functions generated for them.

An operator has an *update* function for each input (a delta of that input in, the delta of
its own rows out, its arrangements brought up to date on the way) and a *computer* for each
set of columns it is looked up by (a key in, the key's rows out, as of now). Both are made
when first needed and dropped when an operator gets or loses a consumer or an arrangement.

Lookups never fail: what is missing in a partial arrangement is computed from its operator's
inputs on the spot, and for base tables read from their source. Only stateful operators drop
changes, those of keys they do not hold; whoever depends on such a key must not hold it either.
"""

from __future__ import annotations

from collections.abc import Callable

from dataflow.expressions.source import Function, Key, key_function
from dataflow.plan.join_shape import is_unique
from dataflow.plan.key_tracing import traced
from dataflow.plan.node import Aggregate, Base, Columns, TopK
from dataflow.plan.placement import NO_INDEX, NO_KEY, Placement, is_stateful
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.delta import Bag, Delta

BagReader = Callable[[Key], Bag]
FUSED = -1
"""Stands for the number of an input where an update function covers the consumer too."""


class Operator:
    """`consumers` are (operator, number of the input); `uses` the inputs' arrangements it holds."""

    def __init__(self, number: int, placement: Placement, inputs: tuple[Operator, ...]) -> None:
        self.number = number
        self.placement = placement
        self.node = placement.node
        self.types = placement.node.types
        self.inputs = inputs
        self.level: int = 1 + max((each.level for each in inputs), default=-1)
        self.bases: frozenset[int] = (
            frozenset({self.node.table})
            if isinstance(self.node, Base)
            else frozenset(table for each in inputs for table in each.bases)
        )
        self.consumers: list[tuple[Operator, int]] = []
        self.uses: list[tuple[Operator, Arrangement]] = []
        self.recordings: list[tuple[Operator, Arrangement]] = []
        """Arrangements of the inputs that are kept as of before a step, for this operator."""
        self.stores: dict[Columns, Arrangement] = {}
        self.state: Arrangement | None = None
        self.delta: Delta = []
        self.updates: dict[int, Function] = {}
        self.paths: dict[tuple[object, ...], object] = {}
        """With several shards, what `dataflow.plan.step_plan` has made for it."""
        self.computers: dict[Columns, BagReader] = {}
        self.is_led = False
        """A top-k whose fills read the first rows of a table in order, not those of their keys."""
        self.rows_in = 0
        """So many changed rows have come to it."""
        self.seconds = 0.0
        """So long it has taken with them, by one step in `table_step.TIMED_EVERY`; that of an aggregate may be part of its consumer's."""
        self.is_indexed: Callable[[Columns], bool] = lambda columns: True

    @property
    def label(self) -> str:
        return f"{type(self.node).__name__}#{self.number}"

    @property
    def is_stateful(self) -> bool:
        return is_stateful(self.node)

    @property
    def is_partial(self) -> bool:
        """Whether it drops changes of keys it does not hold."""
        return self.placement.key is not None

    def invalidate(self) -> None:
        """Drop the code that knows the consumers and arrangements, also where an input's code covers both."""
        self.updates.clear()
        self.paths.clear()
        for each in self.inputs:
            each.updates.pop(FUSED, None)
            each.paths.clear()

    # -- arrangements

    def arrangements(self) -> list[Arrangement]:
        return ([self.state] if self.state is not None else []) + list(self.stores.values())

    def reader(self, columns: Columns) -> Arrangement | None:
        """The arrangement that answers lookups by `columns`, if it exists.

        Its key may be part of `columns`: the caller then checks the others itself.
        """
        if self.state is not None and (not self.state.full or columns == self.state.columns):
            return self.state
        return self.stores.get(columns)

    def new_store(self, columns: Columns, full: str = "") -> Arrangement:
        """An empty arrangement of this operator's rows; partial if a key can be computed, unless `full` says why not."""
        reason = full
        if not traced(self.node, columns):
            reason = self.placement.reason or NO_KEY
        elif isinstance(self.node, Base) and not self.is_indexed(columns):
            reason = NO_INDEX
        elif self.is_stateful and not self.is_partial:
            reason = self.placement.reason
        # A row without columns looks like no row.
        kind = ArrangementKind.UNIQUE if self.types and is_unique(self.node, columns) else ArrangementKind.BAG
        store = Arrangement(columns, kind, key_function(columns, self.types), f"{self.label}{list(columns)}", reason)
        store.delta_of = lambda: self.delta
        self.stores[columns] = store
        self.invalidate()
        return store


def below(operator: Operator) -> dict[int, Operator]:
    """The operator and all that it is made from, by number."""
    found: dict[int, Operator] = {}
    waiting = [operator]
    while waiting:
        each = waiting.pop()
        if each.number not in found:
            found[each.number] = each
            waiting.extend(each.inputs)
    return found


def group_width(node: Aggregate | TopK) -> Columns:
    """The columns of the output that name the group or partition."""
    return tuple(range(len(node.group))) if isinstance(node, Aggregate) else tuple(sorted(set(node.partition)))
