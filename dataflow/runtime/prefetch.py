"""Many keys that are about to be filled: what their fills begin with is read all at once.

A fill starts at the input that its key's columns come from, and so on down to base tables.
Here the keys of many fills go that way together; what is missing at the end is read from the
source in one go, and the fills, one after the other, find it there. What joins look up later,
by columns of the rows found, each fill reads for itself, except where the key decides that too.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataflow.expressions.source import Key
from dataflow.plan.key_tracing import input_column
from dataflow.plan.node import Base, Columns, LeftJoin, SemiJoin
from dataflow.plan.pipeline import lookups_of
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator
from dataflow.runtime.upquery import start_lookups


def prefetch(graph: Graph, operator: Operator, columns: Columns, keys: Sequence[Key]) -> None:
    """Lookups of the operator by `columns` are to come: read what they will ask the source for first."""
    if operator.is_led:
        return
    kept = operator.reader(columns)
    if kept is not None:
        keys = [key for key in _projected(columns, kept.columns, keys) if not kept.full and key not in kept.index]
        columns = kept.columns
    elif operator.state is not None:
        return
    if not columns or not keys:
        return
    node = operator.node
    if isinstance(node, Base):
        graph.prefetch(node, columns, keys)
        return
    for number, inner in start_lookups(node, columns):
        given = [input_column(operator.node, number, column) for column in columns]
        prefetch(graph, operator.inputs[number], inner, _projected(given, inner, keys))
        if isinstance(node, LeftJoin | SemiJoin):
            right = next(each for side, each in lookups_of(node) if side == 1)
            left_of = {right: left for left, right in reversed(node.equalities)}
            if all(left_of[column] in given for column in right):
                wanted = tuple(left_of[column] for column in right)
                prefetch(graph, operator.inputs[1], right, _projected(given, wanted, keys))


def _projected(columns: Sequence[int | None], wanted: Columns, keys: Sequence[Key]) -> list[Key]:
    """Keys over `columns` as keys over `wanted`, each once."""
    places = [columns.index(column) for column in wanted]
    if len(columns) == 1:
        if len(places) == 1:
            return list(keys)
        keys = [(key,) for key in keys]
    parts = ([key[place] for place in places] for key in keys)
    return list(dict.fromkeys(each[0] if len(each) == 1 else tuple(each) for each in parts))
