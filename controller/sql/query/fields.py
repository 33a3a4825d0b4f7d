"""Columns of a statement by number: every column of every table reference has its own.

While a query is planned, `expression.Column.index` is such a number, whatever row the column
will be read from. A `Relation` is a node together with the numbers of its output columns;
`bind` turns an expression over numbers into one over the positions of a relation. So joins
may be reordered, subqueries merged and aggregates put in between without rewriting anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.sql.expressions.nullability import may_be_null
from controller.sql.output import BINARY, NOT_NULL, shown_type, type_flags
from controller.sql.plan import OutputColumn
from dataflow.expressions.expression import Column, Expression, columns_of
from dataflow.expressions.rewriting import mapped
from dataflow.plan.node import Node
from dataflow.values.types import NUMBERS, SqlType


@dataclass(frozen=True, slots=True)
class Field:
    """A column in sight: its number, its name here, and how clients see it.

    `origin` is the database, table or view and column that whoever names it reads; None for a derived table's.
    """

    id: int
    name: str
    type: SqlType
    nullable: bool
    output: OutputColumn
    hidden: bool = False
    origin: tuple[str, str, str] | None = None

    @property
    def column(self) -> Column:
        return Column(self.id, self.type)


class Numbering:
    """Hands out the numbers of one statement, and knows which columns may be NULL."""

    def __init__(self) -> None:
        self._nullable: list[bool] = []
        self._tables = 0

    def fresh(self, type_: SqlType, nullable: bool = True) -> Column:
        self._nullable.append(nullable)
        return Column(len(self._nullable) - 1, type_)

    def may_be_null(self, expression: Expression) -> bool:
        """False only where that is certain."""
        return may_be_null(expression, lambda column: self._nullable[column.index])

    def set_nullable(self, ids: Iterable[int]) -> None:
        for each in ids:
            self._nullable[each] = True

    def fresh_table(self) -> int:
        """The number of a table that exists only while the statement runs."""
        self._tables += 1
        return -1_000_000 - self._tables


@dataclass(frozen=True, slots=True)
class Relation:
    """A node whose output column i is the column of number `ids[i]`."""

    node: Node
    ids: tuple[int, ...]

    def position(self, number: int) -> int:
        return self.ids.index(number)

    def bind(self, expression: Expression) -> Expression:
        places = {number: position for position, number in reversed(list(enumerate(self.ids)))}
        return mapped(expression, lambda column: Column(places[column.index], column.type))


def all_columns(expressions: Iterable[Expression | None]) -> set[int]:
    found: set[int] = set()
    for expression in expressions:
        if expression is not None:
            found |= columns_of(expression)
    return found


def renamed_output(output: OutputColumn, name: str, alias: str) -> OutputColumn:
    """A result column of a derived table as the query around it describes it."""
    return replace(output, name=name, table=alias)


def computed_output(name: str, value: Expression, nullable: bool = True) -> OutputColumn:
    """A result column that is no table's."""
    found = shown_type(value)
    flags = type_flags(found) | (0 if nullable else NOT_NULL) | (BINARY if found.kind in NUMBERS else 0)
    return OutputColumn(name, found, nullable, flags=flags)
