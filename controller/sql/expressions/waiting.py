"""Calls of functions that wait, as expressions (see `dataflow.functions.waiting`)."""

from __future__ import annotations

from controller.sql.parameters import Parameters
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression, Literal
from dataflow.functions import call
from dataflow.functions.waiting import WAITING, WAITING_FUNCTIONS
from dataflow.values.types import BIGINT, text


def waiting(name: str, arguments: list[Expression], parameters: Parameters) -> Expression | None:
    """None for other functions."""
    count = WAITING_FUNCTIONS.get(name)
    if count is None:
        return None
    if len(arguments) != count:
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name.upper())
    return call(WAITING, parameters.fact("waiting_calls", BIGINT), Literal(name, text()), *arguments)
