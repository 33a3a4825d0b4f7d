"""Whether a computed value may be NULL: what is not certain to be a value may."""

from __future__ import annotations

from collections.abc import Callable

from dataflow.expressions.expression import Call, Column, Expression, Literal

_NEVER_NULL = frozenset(
    {"<=>", "is null", "is not null", "isnull", "is true", "is not true", "is false", "is not false", "is unknown", "is not unknown"}
)
_STRICT = frozenset({"=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "xor", "between", "not between", "in", "not in", "negate", "+", "-", "*", "concat", "lower", "upper", "length", "char_length", "abs"})
"""Functions whose result is NULL only if an argument is."""


def may_be_null(expression: Expression, of_column: Callable[[Column], bool]) -> bool:
    """False only where that is certain; `of_column` says so of a column."""
    match expression:
        case Literal(value=value):
            return value is None
        case Column():
            return of_column(expression)
        case Call(function=function, arguments=arguments):
            if function in _NEVER_NULL:
                return False
            if function in ("coalesce", "ifnull"):
                return all(may_be_null(each, of_column) for each in arguments)
            if function in ("case", "if"):
                results = arguments[1:] if function == "if" else (*arguments[1:-1:2], arguments[-1])
                return any(may_be_null(each, of_column) for each in results)
            return function not in _STRICT or any(may_be_null(each, of_column) for each in arguments)
        case _:
            return True
