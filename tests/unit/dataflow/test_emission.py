"""However an expression is compiled, it has the same value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dataflow.compile import Emitter, compile_scalar
from dataflow.errors import MillraceError
from dataflow.expression import Call, Expression, Literal, Parameter
from dataflow.functions import call
from dataflow.types import Row, Value
from tests.unit.dataflow.random_expressions import ROWS, Sample
from tests.unit.dataflow.test_expressions_differential import samples

TYPE_ARGUMENTS = frozenset({"cast", "collate"})
Evaluate = Callable[[Expression, Row, Sequence[Value]], Any]


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


def plainly(expression: Expression, row: Row, parameters: Sequence[Value]) -> Any:
    return compile_scalar(expression)(row, parameters)


def with_a_variable_for_each_column(expression: Expression, row: Row, parameters: Sequence[Value]) -> Any:
    names = [f"column_{position}" for position in range(len(row))]
    emitter = Emitter(columns=names, parameters="given")
    return eval(emitter.output(expression), emitter.namespace | dict(zip(names, row)) | {"given": parameters})


def with_hoisted_parameters(expression: Expression, row: Row, parameters: Sequence[Value]) -> Any:
    emitter = Emitter(hoist=True)
    value = emitter.output(expression)
    lines = [*emitter.prelude, f"return [{value} for r in rows][0]"]
    exec("def f(rows, p):\n" + "\n".join(f"    {line}" for line in lines), emitter.namespace)
    return emitter.namespace["f"]([row], parameters)


def outcome(evaluate: Evaluate, expression: Expression, parameters: Sequence[Value] = ()) -> list[Any]:
    found: list[Any] = []
    for row in ROWS:
        try:
            found.append(repr(evaluate(expression, row, parameters)))
        except MillraceError as error:
            found.append(error.condition)
    return found


@pytest.fixture(scope="module")
def expressions() -> list[Sample]:
    return samples(50, 400, 1) + samples(51, 400, 2)


@pytest.mark.parametrize("evaluate", [plainly, with_a_variable_for_each_column, with_hoisted_parameters])
def test_parameters_give_what_literals_give(expressions: list[Sample], evaluate: Evaluate) -> None:
    wrong = []
    for sample in expressions:
        values: list[Value] = []
        changed = parametrised(sample.ours, values)
        expected, actual = outcome(plainly, sample.ours), outcome(evaluate, changed, values)
        if changed.type.kind is sample.ours.type.kind and changed.type.scale == sample.ours.type.scale and expected != actual:
            wrong.append((sample.sql, expected, actual))
    assert wrong == []
