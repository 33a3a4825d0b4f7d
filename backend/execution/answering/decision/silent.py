"""Whether computing a query's rows can give warnings.

A view gave its own when it was maintained, to nobody. A statement that changes rows has to have them: in strict mode a value that is not what it should be
(1260, 1292, 1365) is an error, however often the statement is repeated. What is not known to be silent is taken to warn.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend.execution.answering.decision.decision import Decision
from backend.execution.answering.decision.maintained import maintained
from controller.sql.plan import Query
from dataflow.expressions.expression import Call, Expression, walk
from dataflow.plan.node import Aggregate, AggregateFunction, Node, expressions_of, inputs_of
from dataflow.values.types import NUMBERS, STRINGS, Kind, SqlType

_COMPARISONS = frozenset({"=", "<=>", "<>", "!=", "<", "<=", ">", ">=", "in", "not in", "between", "not between", "row"})
_LOGIC = frozenset({"and", "&&", "or", "||", "not", "!", "xor", "+", "-", "*", "negate", "is true", "is false", "is not true", "is not false"})
_ANY = frozenset({"is null", "isnull", "is unknown", "is not null", "is not unknown", "coalesce", "ifnull"})
_TEXT = frozenset({"lower", "lcase", "upper", "ucase", "length", "char_length", "like", "not like"})
_AGGREGATES = frozenset({"count", "count_star", "min", "max", "any_value"})
_SUMS = frozenset({"sum", "avg"})


def silently_maintained(query: Query, one: Query | None) -> Decision | None:
    """For the SELECT of a statement that changes rows: a view, if its rows give no warnings."""
    return maintained(query, one) if is_silent(query.node) else None


def is_silent(node: Node) -> bool:
    return all(
        all(map(_is_silent_call, walk(each))) for inner in _nodes(node) for each in expressions_of(inner)
    ) and all(
        _is_silent_function(function) for inner in _nodes(node) if isinstance(inner, Aggregate) for function in inner.functions
    )  # fmt: skip


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for each in inputs_of(node):
        yield from _nodes(each)


def _family(kind: SqlType) -> str:
    if kind.kind is Kind.NULL:
        return "unknown"
    return "number" if kind.kind in NUMBERS else "text" if kind.kind in STRINGS and kind.kind is not Kind.JSON else kind.kind.value


def _is_silent_call(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return True
    families = {_family(each.type) for each in expression.arguments}
    match expression.function:
        case function if function in _ANY:
            return True
        case function if function in _COMPARISONS:
            return len(families) == 1 and families != {"unknown"}
        case function if function in _LOGIC:
            return families == {"number"}
        case function if function in _TEXT:
            return families == {"text"}
        case "case":
            return {_family(each.type) for each in expression.arguments[:-1:2]} == {"number"}
        case "if":
            return _family(expression.arguments[0].type) == "number"
        case _:
            return False


def _is_silent_function(function: AggregateFunction) -> bool:
    if function.function in _SUMS:
        return all(_family(each.type) == "number" for each in function.arguments)
    return function.function in _AGGREGATES
