"""EXPLAIN for the dataflow: what a view is made of, what it holds, and why.

Columns have the names that they have in their table, as far as they come from one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dataflow.expressions.expression import Column
from dataflow.plan.node import (
    Aggregate,
    AggregateFunction,
    Base,
    Join,
    LeftJoin,
    Node,
    SemiJoin,
    TopK,
    Union,
    source_column,
)
from dataflow.runtime.engine import View
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement


@dataclass(frozen=True, slots=True)
class Explanation:
    """One operator. `state` is "partial by …", "full: reason" or empty; `indexes` are its arrangements."""

    operator: str
    does: str
    inputs: tuple[str, ...]
    state: str
    indexes: tuple[str, ...]


def explain(view: View) -> list[Explanation]:
    """The operators of a view, base tables first."""
    found: dict[int, Operator] = {}
    waiting = [view.operator]
    while waiting:
        operator = waiting.pop()
        found[operator.number] = operator
        waiting.extend(operator.inputs)
    ordered = sorted(found.values(), key=lambda each: (each.level, each.number))
    return [_explanation(each) for each in ordered]


def _explanation(operator: Operator) -> Explanation:
    state, node = operator.state, operator.node
    return Explanation(
        operator.label,
        does(operator),
        tuple(each.label for each in operator.inputs),
        "" if state is None else _kept(node, state),
        tuple(f"by {listed(node, each.columns)}: {_kept(node, each)}, {len(each.index)} keys" for each in operator.stores.values()),
    )


def _kept(node: Node, arrangement: Arrangement) -> str:
    return f"full: {arrangement.reason}" if arrangement.full else f"partial by {listed(node, arrangement.columns)}"


def does(operator: Operator) -> str:
    """What an operator computes, in a few words."""
    match operator.node:
        case Base(name=name, table=table):
            return f"table {name or table}"
        case Join(inputs=(_,)) as node:
            return "project" if node.filter is None else "filter"
        case Join(inputs=inputs, equalities=equalities):
            return f"join on {_equal((_of_any(inputs, left), _of_any(inputs, right)) for left, right in equalities)}"
        case LeftJoin(left=left, right=right, equalities=equalities):
            return f"left join on {_equal((column_name(left, one), column_name(right, other)) for one, other in equalities)}"
        case SemiJoin(left=left, right=right, equalities=equalities, negated=negated):
            on = _equal((column_name(left, one), column_name(right, other)) for one, other in equalities)
            return f"{'anti' if negated else 'semi'} join on {on}"
        case Aggregate(input=source, group=group, functions=functions):
            names = ", ".join([_function(source, each) for each in functions]) or "distinct"
            return f"{names} by {listed(source, group)}" if group else names
        case TopK(input=source, limit=limit, offset=offset, partition=partition):
            first = f"rows {offset + 1} to {offset + limit}" if offset else f"top {limit}"
            return f"{first} by {listed(source, partition)}" if partition else first
        case Union():
            return "union"


def listed(node: Node, columns: Iterable[int]) -> str:
    """Columns of the node's rows, for people."""
    return ", ".join([column_name(node, each) for each in columns]) or "no column"


def column_name(node: Node, column: int) -> str:
    """The name in its table; of an aggregate's value the function; else the number of the column, from 1."""
    match node:
        case Base(column_names=names) if column < len(names):
            return names[column]
        case Join(inputs=inputs, outputs=outputs) if (source := source_column(outputs, column)) is not None:
            return _of_any(inputs, source)
        case LeftJoin(left=left, right=right, outputs=outputs) if (source := source_column(outputs, column)) is not None:
            return _of_any((left, right), source)
        case SemiJoin(left=left):
            return column_name(left, column)
        case Aggregate(input=input_, group=group, functions=functions):
            return column_name(input_, group[column]) if column < len(group) else _function(input_, functions[column - len(group)])
        case TopK(input=input_):
            return column_name(input_, column)
        case Union(inputs=(first, *_)):
            return column_name(first, column)
    return f"column {column + 1}"


def _of_any(inputs: Iterable[Node], column: int) -> str:
    """A column of the inputs' rows, one after the other."""
    for each in inputs:
        if column < len(each.types):
            return column_name(each, column)
        column -= len(each.types)
    raise AssertionError("no input has the column")


def _equal(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join([f"{left} = {right}" for left, right in pairs]) or "nothing"


def _function(node: Node, function: AggregateFunction) -> str:
    if function.function == "count_star":
        return "COUNT(*)"
    shown = [column_name(node, each.index) if isinstance(each, Column) else "…" for each in function.arguments]
    return f"{function.function.upper()}({'DISTINCT ' if function.distinct else ''}{', '.join(shown)})"
