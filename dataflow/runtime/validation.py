"""The five invariants of `dataflow.runtime.engine`, checked on a live engine.

Costs as much as computing every filled key anew: for tests, and for an operator in doubt.
"""

from __future__ import annotations

from collections.abc import Callable

from dataflow.expressions.source import Key
from dataflow.plan.placement import place
from dataflow.runtime.graph import Graph
from dataflow.runtime.loading import load
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Bag
from dataflow.state.eviction import Evictor, part_of

Fresh = Callable[[Operator, Arrangement], Callable[[Key], Bag]]


def validate(graph: Graph) -> None:
    """Raise AssertionError with what is wrong, if something is."""
    assert not graph.pending, "an epoch is still being applied"
    scratch = Graph(graph.source)
    for operator in graph.operators.values():
        _check_full_over_partial(operator)
        for arrangement in operator.arrangements():
            _check_rows(operator, arrangement, scratch)
        if operator.state is not None and operator.is_partial:
            _check_dependents(graph, operator, operator.state)


def _check_rows(operator: Operator, arrangement: Arrangement, scratch: Graph) -> None:
    """1 and 5: what is held is what a graph without any state computes; no weight is negative."""
    copy = scratch.build(place(operator.node, frozenset({()})))
    load(scratch)
    expected: dict[Key, Bag] = {}
    for row, weight in scratch.bag_reader(copy, ())(()).items():
        expected.setdefault(arrangement.key_of(row), {})[row] = weight
    keys = set(arrangement.index) | (set(expected) if arrangement.full else set())
    for key in keys:
        value = arrangement.index.get(key)
        rows = {} if value is None else arrangement.bag(value)
        assert all(weight > 0 for weight in rows.values()), f"{arrangement.name}: negative weight at {key!r}: {rows}"
        wanted = expected.get(key, {})
        assert rows == wanted, f"{arrangement.name}: {key!r} is {rows}, from scratch it is {wanted}"


def _check_full_over_partial(operator: Operator) -> None:
    """4: partial never feeds full."""
    is_full = any(each.full for each in operator.arrangements()) and not operator.is_partial
    if operator.node and is_full and operator.inputs:
        waiting = list(operator.inputs)
        while waiting:
            each = waiting.pop()
            assert not each.is_partial, f"{operator.label} is full but fed by {each.label}, which is partial"
            waiting.extend(each.inputs)


def _check_dependents(graph: Graph, operator: Operator, state: Arrangement) -> None:
    """2 and 3: every row below that was made from this operator belongs to a key that is held here.

    Checked from above: a filled key of a consumer's arrangement must be among the dependents
    of some key held, if the operator's rows for its group exist at all.
    """
    evictor = Evictor(graph)
    held = {
        (id(arrangement), key)
        for own in list(state.index)
        for _, arrangement, key in evictor.dependents(operator, state, own)
    }
    for store in operator.stores.values():
        for key, value in store.index.items():
            for row in store.bag(value):
                parts = [part_of(operator, row, column) for column in state.columns]
                own = parts[0] if len(parts) == 1 else tuple(parts)
                assert own in state.index, f"{store.name}: {key!r} is filled but {state.name} has a hole at {own!r}"
                assert (id(store), key) in held, f"{store.name}: {key!r} would survive the eviction of {own!r}"
