"""Projections merged into what they project: fewer operators that a change has to pass through.

SQL over views is projections over projections. A projection is a join of one input without condition;
it goes where its input is a left join, or a join of one input, whose own outputs it then takes the
place of, or where it changes nothing at all. Joins of several inputs stay apart, so that queries that
differ in their columns only share them.

Invariant: the merged node has the same rows, and columns of the same types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dataflow.expression import Call, Column, Expression, walk
from dataflow.node import Aggregate, Join, LeftJoin, Node, SemiJoin, TopK, Union, inputs_of


def merged(node: Node) -> Node:
    """The node without projections that others can do; the same object if there are none."""
    inputs = tuple([merged(each) for each in inputs_of(node)])
    if any(new is not old for new, old in zip(inputs, inputs_of(node))):
        match node:
            case Join() | Union():
                node = replace(node, inputs=inputs)
            case LeftJoin() | SemiJoin():
                node = replace(node, left=inputs[0], right=inputs[1])
            case Aggregate() | TopK():
                node = replace(node, input=inputs[0])
    if isinstance(node, Join) and len(inputs) == 1 and not node.equalities and node.filter is None:
        return _projected(node, inputs[0])
    return node


def _projected(projection: Join, node: Node) -> Node:
    outputs = projection.outputs
    if outputs is None or outputs == _columns(node.types):
        return node
    if isinstance(node, LeftJoin) or (isinstance(node, Join) and len(node.inputs) == 1):
        types = node.input_types if isinstance(node, Join) else node.left.types + node.right.types
        own = node.outputs or _columns(types)
        if _are_cheap(own, outputs):
            return replace(node, outputs=tuple([_substituted(each, own) for each in outputs]))
    return projection


def _columns(types: Sequence[object]) -> tuple[Expression, ...]:
    return tuple([Column(number, each) for number, each in enumerate(types)])  # type: ignore[arg-type]


def _are_cheap(own: Sequence[Expression], outputs: Sequence[Expression]) -> bool:
    """Whether nothing would be computed twice, and everything that may fail still is computed."""
    read = [each for output in outputs for each in walk(output) if isinstance(each, Column)]
    uses = Counter(each.index for each in read)
    once = all(not isinstance(each, Call) or uses[number] == 1 for number, each in enumerate(own))
    return once and all(each.type == own[each.index].type for each in read)


def _substituted(expression: Expression, values: Sequence[Expression]) -> Expression:
    match expression:
        case Column(index):
            return values[index]
        case Call(function, arguments, kind):
            return Call(function, tuple([_substituted(each, values) for each in arguments]), kind)
    return expression
