"""However an expression is compiled, it has the same value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dataflow.errors import MillraceError
from dataflow.expressions.compile import Emitter, compile_scalar
from dataflow.expressions.expression import Call, Expression, Literal, Parameter
from dataflow.functions import call
from dataflow.values.types import Row, Value
from tests.unit.dataflow.random_expressions import COLUMNS, ROWS, Sample
from tests.unit.dataflow.test_expressions_differential import samples

TYPE_ARGUMENTS = frozenset({"cast", "collate"})
Function = Callable[[Row, Sequence[Value]], Any]
Compile = Callable[[Expression], Function]


def parametrised(expression: Expression, values: list[Value]) -> Expression:
    """The expression with its literals given as parameters of the same types."""
    match expression:
        case Literal(value=value, type=type_) if value is not None:
            values.append(value)
            return Parameter(len(values) - 1, type_)
        case Call(function=function, arguments=arguments):
            kept = 1 if function in TYPE_ARGUMENTS else len(arguments)
            changed = [parametrised(argument, values) for argument in arguments[:kept]]
            return call(function, *changed, *arguments[kept:])
    return expression


def plainly(expression: Expression) -> Function:
    return compile_scalar(expression)


def with_a_variable_for_each_column(expression: Expression) -> Function:
    names = [f"column_{position}" for position in range(len(COLUMNS))]
    emitter = Emitter(columns=names, parameters="given")
    return defined(emitter, f"{', '.join(names)} = row", f"return {emitter.output(expression)}")


def with_hoisted_parameters(expression: Expression) -> Function:
    emitter = Emitter(hoist=True, parameters="given")
    value = emitter.output(expression)
    return defined(emitter, *emitter.prelude, f"return [{value} for r in [row]][0]")


def defined(emitter: Emitter, *lines: str) -> Function:
    exec("def f(row, given):\n" + "\n".join(f"    {line}" for line in lines), emitter.namespace)
    function: Function = emitter.namespace["f"]
    return function


def outcome(compiled: Function, parameters: Sequence[Value] = ()) -> list[Any]:
    found: list[Any] = []
    for row in ROWS:
        try:
            found.append(repr(compiled(row, parameters)))
        except MillraceError as error:
            found.append(error.condition)
    return found


@pytest.fixture(scope="module")
def expressions() -> list[Sample]:
    return samples(50, 400, 1) + samples(51, 400, 2)


@pytest.mark.parametrize("compiled", [plainly, with_a_variable_for_each_column, with_hoisted_parameters])
def test_parameters_give_what_literals_give(expressions: list[Sample], compiled: Compile) -> None:
    wrong = []
    for sample in expressions:
        values: list[Value] = []
        changed = parametrised(sample.ours, values)
        expected, actual = outcome(plainly(sample.ours)), outcome(compiled(changed), values)
        if changed.type.kind is sample.ours.type.kind and changed.type.scale == sample.ours.type.scale and expected != actual:
            wrong.append((sample.sql, expected, actual))
    assert wrong == []
