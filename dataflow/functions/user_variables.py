"""`@name := value`, and `@name` in a statement that assigns to it; others know its value beforehand.

The first argument is the `UserVariables` of the statement, the second the variable's name.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dataflow.expressions.expression import Expression
from dataflow.expressions.user_variables import UserVariables
from dataflow.functions.registry import Domain, function
from dataflow.values.conversion.numbers import integer_of, number_of
from dataflow.values.conversion.texts import text_of
from dataflow.values.types import BLOBS, INTEGERS, Kind, Value

ASSIGN = ":="
VARIABLE = "@"


@function(
    ASSIGN,
    arguments=(Domain.ANY, Domain.ANY, Domain.ANY),
    result=lambda arguments: arguments[2].type,
    nulls=True,
    deterministic=False,
)
def assign(variables: UserVariables, name: str, value: Value) -> Value:
    variables.changed[name] = value
    return value


@function(
    VARIABLE,
    arguments=(Domain.ANY, Domain.ANY, Domain.ANY),
    result=lambda arguments: arguments[2].type,
    nulls=True,
    deterministic=False,
    specialise=True,
)
def variable(arguments: tuple[Expression, ...]) -> Callable[..., Value]:
    """The third argument is a NULL of the type that the statement takes the variable to be of."""
    wanted = arguments[2].type
    convert: Callable[[Any], Value]
    if wanted.kind in INTEGERS:
        convert = integer_of
    elif wanted.kind is Kind.DOUBLE:
        convert = lambda value: float(number_of(value))  # noqa: E731
    elif wanted.kind is Kind.DECIMAL:
        convert = lambda value: value if isinstance(value, Decimal) else Decimal(text_of(number_of(value)))  # noqa: E731
    elif wanted.kind in BLOBS:
        convert = lambda value: value if isinstance(value, bytes) else text_of(value).encode()  # noqa: E731
    else:
        convert = text_of

    def read(variables: UserVariables, name: str, _: None) -> Value:
        value = variables.get(name)
        return None if value is None else convert(value)

    return read
