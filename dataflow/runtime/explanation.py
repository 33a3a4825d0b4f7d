"""EXPLAIN for the dataflow: what a view is made of, what it holds, and why."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.plan.node import Aggregate, Base, Join, SemiJoin, TopK
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
    state = operator.state
    return Explanation(
        operator.label,
        does(operator),
        tuple(each.label for each in operator.inputs),
        "" if state is None else _kept(state),
        tuple(f"by {list(each.columns)}: {_kept(each)}, {len(each.index)} keys" for each in operator.stores.values()),
    )


def _kept(arrangement: Arrangement) -> str:
    return f"full: {arrangement.reason}" if arrangement.full else f"partial by {list(arrangement.columns)}"


def does(operator: Operator) -> str:
    """What an operator computes, in a few words."""
    match operator.node:
        case Base(name=name, table=table):
            return f"table {name or table}"
        case Join(inputs=inputs) as node:
            if len(inputs) > 1:
                return f"join of {len(inputs)} on {list(node.equalities)}"
            return "project" if node.filter is None else "filter"
        case SemiJoin(negated=negated) as node:
            return f"{'anti' if negated else 'semi'} join on {list(node.equalities)}"
        case Aggregate(group=group, functions=functions):
            names = ", ".join(each.function for each in functions) or "distinct"
            return f"{names} by {list(group)}"
        case TopK(limit=limit, offset=offset, partition=partition):
            return f"top {limit} from {offset} by {list(partition)}"
        case node:
            return type(node).__name__.lower()
