"""Values of an INSERT that a query finds: subqueries, and columns of its SELECT in ON DUPLICATE KEY UPDATE.

A subquery is taken out of its expression and becomes an output of one SELECT, which is evaluated before the first row is
made. A column that only the SELECT of the statement has becomes one more output of that. What is left in
the expression is a mark, which reads the value behind the row.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.sql.expressions import facts
from controller.sql.expressions.scope import Scope
from controller.sql.expressions.translate import Translator
from controller.sql.plan import Query
from controller.sql.writing.directed import is_default
from dataflow.expressions.expression import Column, Expression
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

    def without_columns(self, node: Any, scope: Scope) -> Any:
        """Columns that `scope` does not have are taken out."""

        def taken(each: Any) -> Any:
            if not isinstance(each, exp.Column) or scope.find(each.name, each.table, each.text("db")):
                return each
            if not each.table and (each.name.lower() in facts.WITHOUT_PARENTHESES or is_default(each)):
                return each
            return self._mark(_COLUMN, self.columns, each)

        return node.transform(taken)

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
