"""A condition as the parts that all have to hold, those that all its alternatives share among them.

`(a AND b) OR (a AND c)` is `a AND (b OR c)`, also where NULLs are involved; only then can `a` join
tables or be looked up in an index. It does not matter on which side of it something is written.
"""

from __future__ import annotations

from controller.sql.query.canonical import normalised
from dataflow.expressions.expression import Call, Expression
from dataflow.functions import call, is_deterministic
from dataflow.plan.join_shape import conjuncts


def conditions(expression: Expression) -> list[Expression]:
    found: list[Expression] = []
    for each in conjuncts(expression):
        found += _factored(each)
    return found


def _factored(condition: Expression) -> list[Expression]:
    if not isinstance(condition, Call) or condition.function != "or":
        return [condition]
    branches = [[normalised(one) for one in conditions(each)] for each in _alternatives(condition)]
    shared = [
        each
        for each in dict.fromkeys(branches[0])
        if all(each in branch for branch in branches[1:]) and is_deterministic(each)
    ]
    if not shared:
        return [condition]
    rest = [[each for each in branch if each not in shared] for branch in branches]
    if not all(rest):
        return shared  # one alternative asks for nothing more
    return [*shared, call("or", *(each[0] if len(each) == 1 else call("and", *each) for each in rest))]


def _alternatives(condition: Call) -> list[Expression]:
    found: list[Expression] = []
    for each in condition.arguments:
        found += _alternatives(each) if isinstance(each, Call) and each.function == "or" else [each]
    return found
