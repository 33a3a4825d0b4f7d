"""Values of an INSERT that a query finds: subqueries, and columns of its SELECT in ON DUPLICATE KEY UPDATE.

A subquery is taken out of its expression and becomes an output of one SELECT, which is evaluated before the first row is
made. A column that only the SELECT of the statement has becomes one more output of that. What is left in
the expression is a mark, which reads the value behind the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from controller.sql.expressions import facts
from controller.sql.expressions.operators import calls_aggregate
from controller.sql.expressions.scope import Scope
from controller.sql.expressions.translate import Translator
from controller.sql.plan import Query
from controller.sql.writing.directed import is_default
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Column, Expression
from dataflow.schema import Table
from dataflow.values.types import SqlType

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
Marks = dict[str, list[Column]]
_SUBQUERY, _COLUMN = "subquery", "column"


class FoundValues:
    """Collects what is taken out of the expressions of one statement."""

    def __init__(self) -> None:
        self.subqueries: list[Any] = []
        self.columns: list[Any] = []

    def without_subqueries(self, node: Any) -> Any:
        return node.transform(lambda each: self._mark(_SUBQUERY, self.subqueries, each) if _reads_query(each) else each)

    def without_columns(self, node: Any, scope: Scope, select: Any, find: FindTable) -> Any:
        """An assignment whose value has no columns that only `select` has: they are taken out, and DEFAULT(column) with them."""
        is_grouped = select.args.get("group") is not None or any(map(calls_aggregate, select.expressions))
        sources = [] if is_grouped else _tables(select, find)

        def taken(each: Any) -> Any:
            if is_call(each, "default") and (column := each.find(exp.Column)) is not None and not in_scope(column):
                return self._mark(_COLUMN, self.columns, each)
            if not isinstance(each, exp.Column):
                return each
            if in_scope(each):
                if not is_call(each.parent, "values") and any(_has(alias, table, each) for alias, table in sources):
                    raise InvalidStatement(Condition.AMBIGUOUS_COLUMN, each.sql("mysql").replace("`", ""), "field list")
                return each
            if not each.table and (each.name.lower() in facts.WITHOUT_PARENTHESES or is_default(each)):
                return each
            if is_grouped:
                raise InvalidStatement(Condition.UNKNOWN_COLUMN, each.sql("mysql").replace("`", ""), "field list")
            return self._mark(_COLUMN, self.columns, each)

        def in_scope(column: Any) -> bool:
            return bool(scope.find(column.name, column.table, column.text("db")))

        if not isinstance(node, exp.EQ):
            return node.transform(taken)
        if not in_scope(node.this):
            raise InvalidStatement(Condition.UNKNOWN_COLUMN, node.this.sql("mysql").replace("`", ""), "field list")
        assigned = node.copy()
        assigned.set("expression", node.expression.copy().transform(taken, copy=False))
        return assigned

    def marks(self, offset: int, before: Query | None, select: Query | None) -> Marks:
        """What each mark reads: the values of `before` from `offset` on, then those that `select` has in addition."""
        first = () if before is None else before.outputs
        more = select.outputs[len(select.outputs) - len(self.columns) :] if select is not None else ()
        read = [Column(offset + place, each.type) for place, each in enumerate((*first, *more))]
        return {_SUBQUERY: read[: len(first)], _COLUMN: read[len(first) :]}

    def _mark(self, kind: str, found: list[Any], node: Any) -> Any:
        mark = exp.Var(this=kind)
        mark.meta["place"] = len(found)
        found.append(exp.alias_(node.copy(), f"{kind}{len(found)}"))
        return mark


class FoundValueTranslator(Translator):
    """Reads a mark as the value that it stands for."""

    marks: Marks

    def visit_var(self, node: Any, hint: SqlType | None) -> Expression:
        found = self.marks[str(node.this)]
        return found[int(node.meta["place"])]


FindTable = Callable[[Any], Table | None]


def is_call(node: Any, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == name


def _tables(select: Any, find: FindTable) -> list[tuple[str, Table]]:
    """The tables in the FROM of a SELECT, each with the name that it goes by there."""
    sources = [select.args.get("from_"), *(select.args.get("joins") or [])]
    named = [each.this for each in sources if each is not None and isinstance(each.this, exp.Table)]
    return [(each.alias_or_name, table) for each in named if (table := find(each)) is not None]


def _has(alias: str, table: Table, column: Any) -> bool:
    """Whether the name may mean a column of the table."""
    return column.table in ("", alias) and any(each.name.lower() == column.name.lower() for each in table.columns)


def _reads_query(node: Any) -> bool:
    """Whether the node is a subquery, or compares with one in a way that needs all of its rows."""
    match node:
        case exp.Query() | exp.Exists():
            return True
        case exp.In():
            return node.args.get("query") is not None or any(isinstance(each, exp.Query) for each in node.expressions)
        case _ if isinstance(node, _COMPARISONS):
            sides = (node.this, node.expression)
            rows = any(isinstance(each, exp.Tuple) for each in sides) and any(isinstance(each, exp.Query) for each in sides)
            return rows or any(isinstance(each, exp.Any | exp.All) for each in sides)
    return False
