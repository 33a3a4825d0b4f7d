"""Rows found for rows: the pairs of expressions by which two sides match, as keys of a hash.

Equalities of columns decide which keys are asked for; all of them, also those of computed
values and `<=>`, decide which rows meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from backend.execution.pace import parts
from backend.execution.rows import Keyed
from controller.sql.query.product import is_key_equality
from dataflow.expressions.compile import compile_row
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.expressions.rewriting import mapped
from dataflow.expressions.source import text_key
from dataflow.functions import is_volatile
from dataflow.plan.node import Columns
from dataflow.values.comparison import equality_key
from dataflow.values.types import Row, Value

Pair = tuple[Expression, Expression, bool]
"""(of the rows at hand, of the rows to be found, whether NULL matches NULL)"""


def pair_of(condition: Expression, here: frozenset[int], there: frozenset[int]) -> Pair | None:
    """The pair that an equality is, `there` being the positions of the rows to be found."""
    if not isinstance(condition, Call) or condition.function not in ("=", "<=>") or is_volatile(condition):
        return None
    left, right = condition.arguments
    if not is_key_equality(left.type, right.type):
        return None
    for one, other in ((left, right), (right, left)):
        if columns_of(other) and columns_of(one) <= here and columns_of(other) <= there and columns_of(one):
            return one, other, condition.function == "<=>"
    return None


class Hash:
    """The keys of one side's rows."""

    def __init__(self, expressions: Sequence[Expression], null_safe: Sequence[bool]) -> None:
        self._values = compile_row(tuple(expressions))
        functions: list[Any] = [text_key(each.type) or equality_key(each.type) for each in expressions]
        self._functions = functions if any(functions) else None
        self._strict = tuple(place for place, safe in enumerate(null_safe) if not safe)
        self._is_single = len(expressions) == 1 and not null_safe[0]

    def keys(self, rows: Sequence[Row], parameters: Sequence[Value]) -> list[Any]:
        """The key of each row; None for one that matches nothing."""
        found: list[Any] = []
        for part in parts(rows):
            found += self._keys(part, parameters)
        return found

    def _keys(self, rows: Sequence[Row], parameters: Sequence[Value]) -> list[Any]:
        found: list[Any] = []
        if self._is_single:
            found = [self._values(row, parameters)[0] for row in rows]
            if self._functions is None:
                return found
            function = self._functions[0]
            return [None if value is None else function(value) for value in found]
        for row in rows:
            values = self._values(row, parameters)
            if any(values[place] is None for place in self._strict):
                found.append(None)
            elif self._functions is None:
                found.append(values)
            else:
                found.append(
                    tuple(
                        [
                            value if function is None or value is None else function(value)
                            for function, value in zip(self._functions, values)
                        ]
                    )
                )
        return found


class RowMatch:
    """How rows at hand find others: which keys to ask for, and which of the rows found are theirs."""

    def __init__(self, pairs: Iterable[Pair], offset: int, usable: Columns) -> None:
        """Positions of the rows to be found begin at `offset` in the pairs' expressions.

        `usable` are those of their columns by which they can be looked up.
        """
        self.pairs = list(pairs)
        safe = [each[2] for each in self.pairs]
        self._here = Hash([each[0] for each in self.pairs], safe)
        self._there = Hash([mapped(each[1], lambda column: Column(column.index - offset, column.type)) for each in self.pairs], safe)
        looked: dict[int, Expression] = {}
        for here, there, null_safe in self.pairs:
            if isinstance(there, Column) and not null_safe and there.index - offset in usable:
                looked.setdefault(there.index - offset, here)
        self.columns: Columns = tuple(sorted(looked))
        self._looked = [looked[each] for each in self.columns]
        self._values = compile_row(tuple(self._looked))
        self._functions: list[Any] = [text_key(each.type) for each in self._looked]

    def wanted(self, rows: Sequence[Row], parameters: Sequence[Value]) -> dict[Any, Row]:
        """The keys of `columns` that any of the rows may find something with."""
        found: Keyed[Any, Row] = Keyed()
        for some in parts(rows):
            self._add_wanted(found, some, parameters)
            found.count_new()
        return found

    def _add_wanted(self, found: dict[Any, Row], rows: Sequence[Row], parameters: Sequence[Value]) -> None:
        values_of, functions = self._values, self._functions
        if len(functions) == 1 and functions[0] is None:
            for row in rows:
                values = values_of(row, parameters)
                if values[0] is not None:
                    found[values[0]] = values
            return
        for row in rows:
            values = values_of(row, parameters)
            if None in values:
                continue
            keyed = [
                value if function is None else function(value)
                for function, value in zip(functions, values)
            ]
            found[keyed[0] if len(keyed) == 1 else tuple(keyed)] = values

    def here(self, rows: Sequence[Row], parameters: Sequence[Value]) -> list[Any]:
        return self._here.keys(rows, parameters)

    def index(self, rows: Sequence[Row], parameters: Sequence[Value]) -> dict[Any, list[Row]]:
        """The rows found, by key."""
        found: Keyed[Any, list[Row]] = Keyed()
        for part in parts(rows):
            for key, row in zip(self._there.keys(part, parameters), part):
                if key is not None:
                    found.setdefault(key, []).append(row)
            found.count_new()
        return found
