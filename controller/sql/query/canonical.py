"""One form for what means the same: order of inputs, of predicates and of their sides.

Nodes and expressions compare by content, so two queries share whatever comes out equal here.
The order is by digest of the content: stable across processes, and blind to names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache

from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter
from dataflow.plan.node import Aggregate, Base, Join, LeftJoin, Node, SemiJoin, TopK, Union

_NODES = (Base, Join, LeftJoin, SemiJoin, Aggregate, TopK, Union)
_MIRRORED = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@lru_cache(maxsize=8192)
def digest(node: Node) -> str:
    """A name for the node's content."""
    if isinstance(node, Base):  # and for its table, whatever columns that has
        return hashlib.md5(b"%d" % node.table, usedforsecurity=False).hexdigest()
    parts = [type(node).__name__]
    for each in fields(node):
        if each.compare:
            parts.append(_text(getattr(node, each.name)))
    return hashlib.md5("|".join(parts).encode(), usedforsecurity=False).hexdigest()


def _text(value: object) -> str:
    if isinstance(value, _NODES):
        return digest(value)
    if isinstance(value, tuple):
        return "(" + ",".join(_text(each) for each in value) + ")"
    return repr(value)


def normalised(expression: Expression) -> Expression:
    """The same predicate with its sides and alternatives in a fixed order."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(normalised(each) for each in expression.arguments)
    function = expression.function
    if function in ("and", "or"):
        arguments = tuple(sorted(set(arguments), key=repr))
        if len(arguments) == 1 and arguments[0].type == expression.type:
            return arguments[0]
        arguments = arguments if len(arguments) > 1 else arguments * 2
    elif function in _MIRRORED and len(arguments) == 2 and _rank(arguments[0]) > _rank(arguments[1]):
        function, arguments = _MIRRORED[function], arguments[::-1]
    elif function == "in" and len(arguments) > 2:
        arguments = (arguments[0], *_listed(arguments[1:]))
    return Call(function, arguments, expression.type)


def _listed(items: Iterable[Expression]) -> list[Expression]:
    """The items of an IN list in a fixed order. Parameters, of which there may be many, are in theirs already, as a rule."""
    different = dict.fromkeys(items)
    parameters = [each for each in different if isinstance(each, Parameter)]
    others = [each for each in different if not isinstance(each, Parameter)]
    return sorted(others, key=repr) + sorted(parameters, key=lambda each: each.index)


def _rank(expression: Expression) -> tuple[int, str]:
    order = {Column: 0, Call: 1, Parameter: 2, Literal: 3}
    return order[type(expression)], repr(expression)
