"""`a = ? OR b = ?`: the keys of one view, although no column has both.

The view has each row of the query's node once for each alternative, with the alternative's
number and its column at the end, and is looked up by that column. A row that comes with an
alternative counts if it fulfils that one and none before it, so a row that fulfils several is
there once, as often as the node has it. All is one lookup, so it is as of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.sql.plan import Query
from controller.sql.query.keys import key_equality
from dataflow.expressions.compile import compile_predicate, compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.expressions.source import key_function
from dataflow.functions import is_deterministic
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Join, Node, Union
from dataflow.values.types import BIGINT, BLOBS, DATES, INTEGERS, TEXTS, Row, SqlType, Value

ALTERNATIVES_MAX = 8


class Alternatives:
    """`key` is the column of the view that it is looked up by."""

    def __init__(
        self,
        query: Query,
        disjuncts: Sequence[Expression],
        columns: Sequence[Column],
        values: Sequence[Sequence[Expression]],
    ) -> None:
        self._types = query.node.types
        self._width = len(self._types)
        self.columns = tuple(column.index for column in columns)
        self.key = self._width + 1
        self._disjuncts = [compile_predicate(each) for each in disjuncts]
        self._values = [compile_scalar(each) for several in values for each in several]
        self._key_of = key_function((0,), [columns[0].type])

    def node(self, inner: Node) -> Node:
        row = [Column(place, kind) for place, kind in enumerate(self._types)]
        return Union(
            tuple(
                Join((inner,), outputs=(*row, Literal(number, BIGINT), row[column]))
                for number, column in enumerate(self.columns)
            )
        )

    def keys(self, parameters: tuple[Value, ...]) -> list[Row]:
        """What the view has to be asked for."""
        given = [value((), parameters) for value in self._values]
        return list({self._key_of((each,)): (each,) for each in given if each is not None}.values())

    def rows(self, found: Iterable[Row], parameters: tuple[Value, ...]) -> list[Row]:
        """The node's rows that fulfil one of the alternatives, from those of the view."""
        width, disjuncts = self._width, self._disjuncts
        rows = []
        for row in found:
            number = row[width]
            assert isinstance(number, int)
            if disjuncts[number](row, parameters) and not any(each(row, parameters) for each in disjuncts[:number]):
                rows.append(row[:width])
        return rows


def alternatives_of(query: Query, filter_: Expression | None) -> Alternatives | None:
    """The first condition of the filter that is a choice of keys, if there is one."""
    for condition in conjuncts(filter_):
        disjuncts = _disjuncts(condition)
        if not 1 < len(disjuncts) <= ALTERNATIVES_MAX or not is_deterministic(condition):
            continue
        found = [_first_key(each) for each in disjuncts]
        if all(found) and len({_family(each[0].type) for each in found if each is not None}) == 1:
            columns = [each[0] for each in found if each is not None]
            return Alternatives(query, disjuncts, columns, [each[1] for each in found if each is not None])
    return None


def _disjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "or":
        return [part for each in condition.arguments for part in _disjuncts(each)]
    return [condition]


def _first_key(condition: Expression) -> tuple[Column, tuple[Expression, ...]] | None:
    return next((found for each in conjuncts(condition) if (found := key_equality(each)) is not None), None)


def _family(kind: SqlType) -> object:
    """Columns of one family have values of one kind, which are equal where SQL calls them equal."""
    if kind.kind in INTEGERS:
        return "integer"
    if kind.kind in TEXTS:
        return "text", kind.collation
    if kind.kind in DATES:
        return "date"
    return "bytes" if kind.kind in BLOBS else kind
