"""The parameter vector of a statement while it is planned."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow.expressions.expression import Parameter
from dataflow.values.types import SqlType, text


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

    def parameter(self, index: int, hint: SqlType | None) -> Parameter:
        found = self.types[index]
        if found is None:
            found = self.types[index] = hint or text()
        return Parameter(index, found)

    def fact(self, name: str, kind: SqlType) -> Parameter:
        if name not in self.facts:
            self.facts.append(name)
        return Parameter(len(self.types) + self.facts.index(name), kind)
