"""The parameter vector of a statement while it is planned."""

from __future__ import annotations

from collections.abc import Sequence

from controller.sql.expressions.scope import TableInSight, read
from controller.sql.expressions.stored_zone import local_values
from dataflow.expressions.expression import Expression, Parameter
from dataflow.expressions.rewriting import mapped
from dataflow.schema import Table
from dataflow.values.types import SqlType, text

ColumnUse = tuple[str, str, str, str]
"""A privilege that a statement needs, and the database, the table or view and the column that it needs it on.
The column `*` stands beside those that were not named one by one."""


class Parameters:
    """The statement's parameters and after them its facts, shared by all its clauses.

    `types` has the type of each parameter's value, or None where that is not known yet (a
    statement being prepared): then the place where it stands decides.
    """

    def __init__(self, types: Sequence[SqlType | None], are_given: bool = False) -> None:
        """`are_given`: the statement is a prepared one, so that parameters are no literals of its text."""
        self.types = list(types)
        self.are_given = are_given
        self.facts: list[str] = []
        self.assigned: frozenset[str] = frozenset()
        """The user variables that the statement assigns to."""
        self.sequences = 0
        """So many RAND(seed) are in the statement."""
        self.uses: set[ColumnUse] = set()
        """Of the columns that the statement itself names, not the views that it reads."""

    def use(self, privilege: str, table: Table, position: int) -> None:
        self.uses.add((privilege, table.database, table.name, table.columns[position].name))

    def read(self, source: TableInSight, position: int, zone: str) -> Expression:
        """A column that the statement names. What follows the stored row is a row that is to be inserted, and not the table's."""
        if not source.offset:
            self.use("SELECT", source.table, position)
        local = local_values(source.table, zone).get(position)
        if local is not None:
            return mapped(local, lambda column: read(source, column.index))
        return read(source, position)

    def parameter(self, index: int, hint: SqlType | None) -> Parameter:
        found = self.types[index]
        if found is None:
            found = self.types[index] = hint or text()
        return Parameter(index, found)

    def fact(self, name: str, kind: SqlType) -> Parameter:
        if name not in self.facts:
            self.facts.append(name)
        return Parameter(len(self.types) + self.facts.index(name), kind)
