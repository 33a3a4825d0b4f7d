"""WITH RECURSIVE: a query whose recursive part is asked again for the rows of the round before.

And entries of a WITH that leave something to chance: they are evaluated once, whoever reads them. Rounds are run when the statement is (see `plan.Recursion`); no node keeps them. Columns have the
types of the part that is not recursive, as in MySQL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from controller.sql.clauses import limits
from controller.sql.expressions.scope import FIELD_LIST
from controller.sql.plan import Query, Recursion
from controller.sql.query.block import AnyBlock, Block, SetBlock, draws
from controller.sql.query.keys import finish
from controller.sql.query.names import CommonTable, Names, PassingTable
from controller.sql.query.wrapping import wrapped
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call

if TYPE_CHECKING:
    from controller.sql.query.resolve import Resolver


def refers_to_itself(name: str, query: Any) -> bool:
    return bool(_references(name, query))


@dataclass(slots=True)
class Recursions:
    """The tables of one statement's WITH that are evaluated first, each once, in the order in which they have to be."""

    resolver: Resolver
    found: dict[int, tuple[CommonTable, PassingTable, Recursion | Query]]

    def rows(self, name: str, common: CommonTable, database: str | None) -> PassingTable:
        known = self.found.get(id(common))
        if known is None:
            known = self.found[id(common)] = (common, *self._resolved(name, common, database))
        return known[1]

    def drawn(self, common: CommonTable, block: AnyBlock) -> PassingTable | None:
        """The rows of `block`, which `common` is, if they are left to chance."""
        known = self.found.get(id(common))
        if known is None and draws(block):
            numbering = self.resolver.numbering
            known = (common, PassingTable(numbering.fresh_table(), tuple(block.columns)), finish(block, numbering, ()))
            self.found[id(common)] = known
        return None if known is None else known[1]

    def _resolved(self, name: str, common: CommonTable, database: str | None) -> tuple[PassingTable, Recursion]:
        resolver, query = self.resolver, common.query
        around = resolver.with_common(query, Names(None, database, common.scope))
        while isinstance(query, exp.Subquery):
            query = query.this
            around = resolver.with_common(query, around)
        first, following, distinct = _parts(name, query)
        if query.args.get("order"):
            raise Unsupported("ORDER BY over the UNION of a recursive common table expression")
        start = resolver.query(first, Names(None, database, around.common))
        names = common.columns or tuple(each.name for each in start.columns)
        if len(names) != len(start.outputs):
            raise InvalidStatement(Condition.COLUMN_COUNT_IN_VIEW)
        shown = tuple(replace(each, name=name_, nullable=True) for each, name_ in zip(start.columns, names))
        for column, _ in start.outputs:
            resolver.numbering.set_nullable([column.index])
        before = PassingTable(resolver.numbering.fresh_table(), shown)
        scope = {**around.common, name.lower(): CommonTable(None, (), {}, rows=before)}
        blocks = [resolver.query(each, Names(None, database, scope)) for each in following]
        again: AnyBlock | None = None
        for block in blocks:
            if isinstance(block, Block) and (block.grouping is not None or block.windows):
                raise InvalidStatement(Condition.CTE_AGGREGATES, name)
            if len(block.outputs) != len(start.outputs):
                raise InvalidStatement(Condition.SET_COLUMN_COUNT)
            again = block if again is None else SetBlock("union", False, (again, block), list(start.outputs), list(start.columns))
        assert again is not None
        stored = wrapped(again, resolver.numbering)
        stored.outputs = [
            (made, value if value.type == kept.type else Call("coalesce", (value,), kept.type))
            for (made, value), (kept, _) in zip(stored.outputs, start.outputs)
        ]
        limit, offset = limits(query, resolver.translator(Names(), FIELD_LIST, {}))
        recursion = Recursion(
            finish(start, resolver.numbering, ()),
            finish(stored, resolver.numbering, ()),
            before.table,
            distinct,
            resolver.settings.recursion_depth_max,
            limit,
            offset,
        )
        return PassingTable(resolver.numbering.fresh_table(), shown), recursion


def _parts(name: str, query: Any) -> tuple[Any, list[Any], bool]:
    """What comes first, the recursive parts, and whether equal rows count once."""
    if not isinstance(query, exp.Union):
        raise InvalidStatement(Condition.CTE_NEEDS_UNION, name)
    following: list[Any] = []
    distinct = False
    while isinstance(query, exp.Union) and _references(name, query.expression):
        following.insert(0, _checked(name, query.expression))
        distinct = distinct or bool(query.args.get("distinct"))
        query = query.this
    if not following or _references(name, query):
        raise InvalidStatement(Condition.CTE_NEEDS_FIRST, name)
    return query, following, distinct


def _checked(name: str, part: Any) -> Any:
    while isinstance(part, exp.Subquery):
        part = part.this
    found = _references(name, part)
    if len(found) > 1 or found[0].find_ancestor(exp.Select) is not part:
        raise InvalidStatement(Condition.CTE_TWICE, name)
    join = found[0].parent
    if isinstance(join, exp.Join) and (join.args.get("side") or "").upper() == "LEFT":
        raise InvalidStatement(Condition.CTE_OUTER_JOIN, name)
    return part


def _references(name: str, query: Any) -> list[Any]:
    return [each for each in query.find_all(exp.Table) if each.name.lower() == name.lower() and not each.text("db")]
