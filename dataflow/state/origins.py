"""The state below a key: which keys of stateful operators its rows were made from.

State in the middle of the graph is kept for what is made from it, so it can go when that
goes. Where an operator's rows show the key of a state below it, as they nearly always do, a
*route* says in which columns. What no route leads to is found by looking for state that
nothing depends on, see `clock`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dataflow.expressions.source import Key, key_function
from dataflow.plan.join_shape import shape_of
from dataflow.plan.node import Aggregate, Columns, Join, LeftJoin, SemiJoin, source_column
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from dataflow.values.types import Row

Exposed = dict[int, int]
"""column of some operator → the column that shows it further down"""
Route = tuple[Operator, Columns, Callable[[Row], Key]]
"""A stateful operator, the columns that show the key of its state, and how that is taken from a row."""


def routes(operator: Operator, arrangement: Arrangement) -> list[Route]:
    """The ways from rows of an arrangement to the state they were made from."""
    node = operator.node
    if arrangement is not operator.state:
        found = list(_from(operator, {column: column for column in range(len(node.types))}))
    else:
        group = node.group if isinstance(node, Aggregate) else range(len(node.types))
        exposed = {column: place for place, column in enumerate(group)}
        found = [end for each in operator.inputs for end in _from(each, exposed)]
    return [(owner, columns, key_function(columns, operator.types)) for owner, columns in found]


def _from(operator: Operator, exposed: Exposed) -> Iterator[tuple[Operator, Columns]]:
    state = operator.state
    if state is None:
        for number, each in enumerate(operator.inputs):
            yield from _from(each, _through(operator, number, exposed))
    elif not state.full and all(column in exposed for column in state.columns):
        yield operator, tuple(exposed[column] for column in state.columns)


def _through(operator: Operator, number: int, exposed: Exposed) -> Exposed:
    """What is shown of the columns of an input."""
    node = operator.node
    if not isinstance(node, Join | LeftJoin | SemiJoin):
        return exposed
    shape, found = shape_of(node), Exposed()
    outputs = None if isinstance(node, SemiJoin) else node.outputs
    positions = [(position, shown) for c, shown in exposed.items() if (position := source_column(outputs, c)) is not None]
    # In order: the right side of a left join may show NULL where the left one shows the value.
    for position, shown in sorted(positions):
        for member in shape.members[position]:
            if shape.input_of[member] == number:
                found.setdefault(shape.column(member), shown)
    return found


def origins(arrangement: Arrangement, key: Key, route: Route) -> set[Key]:
    """The keys at the end of a route that a key of an arrangement was made from."""
    _, columns, key_of = route
    if columns == arrangement.columns:
        return {key}
    value = arrangement.index.get(key)
    return set() if value is None else {key_of(row) for row in arrangement.bag(value)}
