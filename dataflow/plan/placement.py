"""The placement of state, partial or full, decided for a whole query when it is planned.

A stateful node (aggregate, top-k) that is only ever looked up by traced columns keeps just
the keys asked for; otherwise it is full, and so is every stateful node below a full one:
partial never feeds full. A `Placement` is the identity of an operator: queries that place an
equal node in the same way share it and its state. Reasons are kept for EXPLAIN.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dataflow.aggregates.accumulator import accumulator
from dataflow.errors import Unsupported
from dataflow.expressions.expression import Parameter, walk
from dataflow.expressions.source import FunctionSource
from dataflow.plan.key_tracing import start_of, traced
from dataflow.plan.node import (
    Aggregate,
    Columns,
    Join,
    LeftJoin,
    Node,
    SemiJoin,
    TopK,
    Union,
    expressions_of,
    inputs_of,
    source_column,
)
from dataflow.plan.pipeline import lookups_of

JOIN_INPUTS_MAX = 16
"""Python allows 20 nested loops in a function, and an input may need one."""
NO_KEY = "it is read without a key"
COMPUTED_KEY = "its key is computed, not traced to a base table"
NOT_PARTIAL = "partial state is switched off"
NO_INDEX = "the table has no index on these columns"


@dataclass(frozen=True)
class Placement:
    """A node with the way its state is kept.

    `key` is what a stateful node is partial by, None if it is full (and for nodes without
    state). `reason` says why it is full, for EXPLAIN.
    """

    node: Node
    inputs: tuple[Placement, ...] = ()
    key: Columns | None = None
    reason: str = field(default="", compare=False)

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.node, self.inputs, self.key))
        return int(found)


def is_stateful(node: Node) -> bool:
    return isinstance(node, Aggregate | TopK)


def place(node: Node, lookups: frozenset[Columns], full: str = "") -> Placement:
    """Place `node`, which its consumers look up by each of `lookups`.

    `full` is the reason why it has to see every change, empty if it need not.
    """
    if isinstance(node, Join) and len(node.inputs) > JOIN_INPUTS_MAX:
        raise Unsupported(f"a join of more than {JOIN_INPUTS_MAX} tables at once")
    for expression in expressions_of(node):
        assert not any(isinstance(each, Parameter) for each in walk(expression)), "parameters are keys, not part of a plan"
    if not is_stateful(node):
        if not full and any(not traced(node, columns) for columns in lookups):
            full = NO_KEY if () in lookups else COMPUTED_KEY
        wanted = _wanted_of_inputs(node, lookups)
        return Placement(node, tuple(place(each, wanted[i], full) for i, each in enumerate(inputs_of(node))), None, full)
    assert isinstance(node, Aggregate | TopK)
    if isinstance(node, Aggregate):
        # What cannot be run is refused here, before anything is built.
        for function in node.functions:
            accumulator(FunctionSource("", ""), function)
    key: Columns = ()
    if not full:
        key, full = _partial_key(node, lookups)
    if full:
        return Placement(node, (place(node.input, frozenset({()}), full),), None, full)
    inner = node.group if isinstance(node, Aggregate) else tuple(range(len(node.types)))
    below = tuple(sorted(inner[c] for c in key))
    return Placement(node, (place(node.input, frozenset({below})),), key)


def _partial_key(node: Aggregate | TopK, lookups: frozenset[Columns]) -> tuple[Columns, str]:
    common = set.intersection(*(set(each) for each in lookups)) if lookups else set()
    if common:
        key = traced(node, tuple(sorted(common)))
        if key:
            return key, ""
        return (), COMPUTED_KEY
    if len(lookups) > 1 and all(lookups):
        return (), "it is looked up by different columns that have none in common"
    return (), NO_KEY


def _wanted_of_inputs(node: Node, lookups: frozenset[Columns]) -> list[frozenset[Columns]]:
    """By which columns the pipelines of `node`, for changes and for keys, look up each input."""
    wanted: list[set[Columns]] = [set() for _ in inputs_of(node)]
    for number, columns in lookups_of(node):
        wanted[number].add(columns)
    for columns in lookups:
        match node:
            case Join():
                start, given = start_of(node, columns)
                wanted[start].add(given)
                for number, inner in lookups_of(node, start):
                    wanted[number].add(inner)
            case LeftJoin() | SemiJoin():
                outputs = node.outputs if isinstance(node, LeftJoin) else None
                positions = {source_column(outputs, c) for c in columns}
                inner = tuple(sorted(p for p in positions if p is not None and p < len(node.left.types)))
                wanted[0].add(traced(node.left, inner))
            case Union():
                for each in wanted:
                    each.add(traced(node, columns))
    return [frozenset(each) for each in wanted]
