"""Scalar expressions as data: four node kinds, typed when built, compiled once.

Every operator and function is a `Call` by name ("=", "+", "and", "concat", "case", "cast"…);
`dataflow.functions` knows each one's argument count, result type and code. Expressions are
plain frozen values: they hash, compare and travel in messages.

A session's facts (NOW(), CURRENT_USER(), LAST_INSERT_ID(), user variables) are not functions
here: the planner makes each a `Parameter`, so an expression's value depends on its row and
its parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dataflow.values.types import SqlType, Value


@dataclass(frozen=True, slots=True)
class Column:
    """The value at `index` of the input row."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: SqlType


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value at `index` of the parameters given with each evaluation."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class Call:
    """Build with `dataflow.functions.call`, which checks the arguments and infers `type`."""

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType


Expression = Column | Literal | Parameter | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """`expression` and everything below it, parents first."""
    pending = [expression]
    while pending:
        found = pending.pop()
        yield found
        if isinstance(found, Call):
            pending.extend(reversed(found.arguments))


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of the input row that `expression` reads."""
    return frozenset(node.index for node in walk(expression) if isinstance(node, Column))


def parameters_of(expression: Expression) -> frozenset[int]:
    """The places of the parameters that `expression` reads."""
    return frozenset(node.index for node in walk(expression) if isinstance(node, Parameter))
