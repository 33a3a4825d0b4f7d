"""The columns that a named view is looked up by if nobody says: those that tell its rows apart.

Columns that follow from others are left out: those of a table from its primary key, a joined
row from the columns that it is found by. Of tables without a primary key nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.catalog import Catalog
from controller.sql.parameters import Parameters
from controller.sql.planner import parse_statement
from controller.sql.query import plan_query
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.expressions.expression import Column, Expression
from dataflow.plan.node import Aggregate, Base, Join, LeftJoin, Node, SemiJoin, TopK
from dataflow.values.types import SqlType

Columns = frozenset[int]


def natural_key(sql: str, catalog: Catalog, schema: str | None) -> list[str] | None:
    """The names of the columns, for a SELECT without parameters; None if it does not show them."""
    query = plan_query(parse_statement(sql), catalog, schema, DEFAULT_SETTINGS, Parameters([]))
    rows = _rows_of(query.node)
    shown = None if rows is None else rows.shown(_places(query.outputs))
    return None if shown is None else [query.columns[each].name for each in sorted(shown.key)]


@dataclass(frozen=True, slots=True)
class _Rows:
    """No two rows agree on all of `key`; those that agree on the left of a rule agree on its right."""

    key: Columns
    rules: tuple[tuple[Columns, Columns], ...]

    def following(self, columns: Columns) -> Columns:
        """All columns that are known where these are."""
        known, before = columns, None
        while known != before:
            before = known
            known = known.union(*(right for left, right in self.rules if left <= known))
        return known

    def least(self, key: Columns, wanted: Iterable[int]) -> Columns:
        """What the columns of the key follow from, better from those that are wanted."""
        for each in sorted(key, key=lambda each: (each in wanted, -each)):
            if each in self.following(key - {each}):
                key -= {each}
        return key

    def shown(self, places: Mapping[int, int]) -> _Rows | None:
        """What is known of the rows if only some of their columns are shown, at these places."""

        def moved(columns: Columns) -> Columns:
            return frozenset(places[each] for each in columns if each in places)

        key = self.least(self.key, places)
        rules = tuple((moved(left), moved(self.following(left))) for left, _ in self.rules if left <= places.keys())
        return _Rows(moved(key), rules) if key <= places.keys() else None


def _rows_of(node: Node) -> _Rows | None:
    """None if nothing tells the rows of the node apart."""
    match node:
        case Base(primary_key=key):
            return _Rows(frozenset(key), (_rule(key, node),)) if key else None
        case Aggregate(input=input_, group=group):
            rows = _rows_of(input_)
            grouped = _Rows(frozenset(group), () if rows is None else rows.rules)
            shown = grouped.shown({column: place for place, column in enumerate(group)})
            return None if shown is None else replace(shown, rules=(*shown.rules, _rule(shown.key, node)))
        case Join(inputs=inputs, equalities=equalities, outputs=outputs):
            joined = _product(inputs)
            if joined is None:
                return None
            equal = [(frozenset({each}), frozenset(pair)) for pair in equalities for each in pair]
            return replace(joined, rules=(*joined.rules, *equal)).shown(_places(outputs, node.input_types))
        case LeftJoin(left=left, right=right, equalities=equalities, outputs=outputs):
            joined, found = _product((left, right)), _rows_of(right)
            if joined is None or found is None:
                return None
            start = len(left.types)
            if found.key <= found.following(frozenset(each for _, each in equalities)):
                single = (joined.key & set(range(start)), frozenset(range(start, start + len(right.types))))
                joined = replace(joined, rules=(*joined.rules, single))
            return joined.shown(_places(outputs, left.types + right.types))
        case SemiJoin(left=kept) | TopK(input=kept):
            return _rows_of(kept)
    return None


def _rule(key: Iterable[int], node: Node) -> tuple[Columns, Columns]:
    return frozenset(key), frozenset(range(len(node.types)))


def _product(inputs: Iterable[Node]) -> _Rows | None:
    """Every row of each input with every one of the others."""
    key: Columns = frozenset()
    rules: list[tuple[Columns, Columns]] = []
    start = 0
    for each in inputs:
        rows = _rows_of(each)
        if rows is None:
            return None
        moved = rows.shown({column: column + start for column in range(len(each.types))})
        assert moved is not None
        key |= moved.key
        rules += moved.rules
        start += len(each.types)
    return _Rows(key, tuple(rules))


def _places(outputs: Sequence[Expression] | None, types: Sequence[SqlType] = ()) -> dict[int, int]:
    """Where each column is shown first."""
    if outputs is None:
        return {column: column for column in range(len(types))}
    return {each.index: place for place, each in reversed([*enumerate(outputs)]) if isinstance(each, Column)}
