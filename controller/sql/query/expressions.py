"""Expressions inside a query: columns by number, subqueries and window functions as columns.

What is the same for every statement is done by `Translator`; this adds what needs a FROM of
several tables, queries around, and queries inside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from controller.sql.expressions import facts
from controller.sql.expressions.aggregation import read_aggregate
from controller.sql.expressions.scope import Scope
from controller.sql.expressions.translate import Translator
from controller.sql.expressions.zone import aligned, in_utc, localised
from controller.sql.query.block import Subquery
from controller.sql.query.fields import Numbering, all_columns
from controller.sql.query.names import ALIAS, Names, Visible
from controller.sql.query.wrapping import wrapped
from controller.sql.text.parse import syntax_error
from dataflow import schema
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression
from dataflow.functions import call
from dataflow.values.types import BOOLEAN, Kind, SqlType

if TYPE_CHECKING:
    from controller.sql.query.resolve import Resolver

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "<=>": "<=>"}

UNNAMED = "unnamed"
"""Marks a column that the planner reads, not the statement."""

Collector = Callable[[str, Any, "QueryTranslator"], Expression]
"""Given an aggregate's name and node, the expression that reads its value."""
WindowCollector = Callable[[Any, "QueryTranslator"], Expression]


class QueryTranslator(Translator):
    """Translates expressions of one clause of one query."""

    def __init__(
        self,
        resolver: Resolver,
        names: Names,
        clause: str,
        subqueries: dict[int, Subquery],
        collect: Collector | None = None,
        aliases: dict[str, Expression] | None = None,
        aliases_first: bool = False,
        ambiguous: Collection[str] = (),
        windows: WindowCollector | None = None,
        levels: Callable[[Any, QueryTranslator], Expression] | None = None,
        readable: Set[int] | None = None,
    ) -> None:
        """`aliases` are names that stand for expressions; they come before columns where `aliases_first`. `ambiguous` are those of
        several columns, none of which is meant. `readable` are the only columns of the query's own that may be named outside of aggregates."""
        super().__init__(Scope(), clause, resolver.parameters, resolver.settings)
        self._collect = collect
        self._aliases = aliases or {}
        self._aliases_first = aliases_first
        self._ambiguous = ambiguous
        self.resolver = resolver
        self.names = names
        self.subqueries = subqueries
        self._windows = windows
        self._levels = levels
        self._readable = readable

    @property
    def _numbering(self) -> Numbering:
        return self.resolver.numbering

    # -- names

    def visit_column(self, node: Any, hint: SqlType | None) -> Expression:
        name, table, database = node.name, node.table, node.text("db")
        if not table and not node.this.args.get("quoted") and name.lower() in facts.WITHOUT_PARENTHESES:
            return self._function(name.lower(), [], node)
        if isinstance(node.this, exp.Star):
            raise syntax_error("*", 0)
        if not table and name.lower() in self._ambiguous:
            raise InvalidStatement(Condition.AMBIGUOUS_COLUMN, name, self.clause)
        alias = None if table else self._aliases.get(name.lower())
        if alias is not None and (self._aliases_first or len(self.names.own(name)) != 1):
            return alias
        if self._readable is not None and (own := self.names.own(name, table, database)) and not {each.field.id for each in own} & self._readable:
            if self.names.parent is None:
                raise InvalidStatement(Condition.UNKNOWN_COLUMN, ".".join(filter(None, (database, table, name))), self.clause)
            return self._used(self.names.parent.resolve(name, table, database, self.clause))
        found = self.names.resolve(name, table, database, self.clause)
        return found.value if node.meta.get(UNNAMED) else self._used(found)

    def visit_identifier(self, node: Any, hint: SqlType | None) -> Expression:
        return self._used(self.names.resolve(node.name, "", "", self.clause))

    def _used(self, found: Visible) -> Expression:
        self.resolver.use(found.field)
        return found.value

    def stored_column(self, node: Any) -> schema.TableColumn:
        field = self.names.resolve(node.name, node.text("table"), node.text("db"), self.clause).field
        self.resolver.use(field)
        origin = field.output
        for table in self.resolver.tables.values():
            if (table.database, table.name) == (origin.database, origin.original_table):
                return next(column for column in table.columns if column.name == origin.original_name)
        raise InvalidStatement(Condition.NO_DEFAULT, node.name)

    def without_aggregates(self) -> Translator:
        """For the arguments of an aggregate: another one in there is an error."""
        return QueryTranslator(self.resolver, self.names, self.clause, self.subqueries)

    # -- subqueries

    def visit_subquery(self, node: Any, hint: SqlType | None) -> Expression:
        block = self.resolver.query(node, self.names.inside())
        if len(block.outputs) != 1:
            raise InvalidStatement(Condition.OPERAND_COLUMNS, 1)
        return self._subquery("scalar", block, block.outputs[0][0].type)

    visit_select = visit_subquery
    visit_union = visit_subquery
    visit_intersect = visit_subquery
    visit_except = visit_subquery

    def visit_exists(self, node: Any, hint: SqlType | None) -> Expression:
        return self._subquery("exists", self.resolver.query(node.this, self.names.inside()), BOOLEAN)

    def visit_in(self, node: Any, hint: SqlType | None) -> Expression:
        query = node.args.get("query")
        if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
            query = node.expressions[0]
        if query is None:
            return super().visit_in(node, hint)
        return self._some("=", node.this, query)

    def _binary(self, node: Any, operator: str) -> Expression:
        if isinstance(node, _COMPARISONS):
            left, right = node.this, node.expression
            if isinstance(right, exp.Any | exp.All):
                return self._quantified(operator, left, right)
            if isinstance(left, exp.Any | exp.All):
                return self._quantified(_MIRRORED[operator], right, left)
            if isinstance(left, exp.Query) or isinstance(right, exp.Query):
                rows = [self._row(each) for each in (left, right)]
                if any(isinstance(each, Call) and each.function == "row" for each in rows):
                    return call(operator, *rows)
                return call(operator, *aligned(rows, self.settings.time_zone))
        return super()._binary(node, operator)

    def _row(self, node: Any) -> Expression:
        """One side of a comparison; a subquery of several columns is a row, each value of it a subquery."""
        if not isinstance(node, exp.Query):
            return self.translate(node)
        block = self.resolver.query(node, self.names.inside())
        if len(block.outputs) == 1:
            return localised(self._subquery("scalar", block, block.outputs[0][0].type), self.settings.time_zone)
        values: list[Expression] = []
        for place in range(len(block.outputs)):
            one = wrapped(self.resolver.query(node, self.names.inside()), self._numbering, [place])
            values.append(localised(self._subquery("scalar", one, one.outputs[0][0].type), self.settings.time_zone))
        return call("row", *values)

    def _quantified(self, operator: str, value: Any, node: Any) -> Expression:
        query = node.this
        if not isinstance(query, exp.Query) or operator == "<=>":
            raise syntax_error(node.sql("mysql"), 0)
        if isinstance(node, exp.Any):
            return self._some(operator, value, query)
        return call("not", self._some(_OPPOSITE[operator], value, query))

    def _some(self, operator: str, value: Any, query: Any) -> Expression:
        """Whether some row of `query` compares so with `value`."""
        operand = self._row(value)
        operands = operand.arguments if isinstance(operand, Call) and operand.function == "row" else (operand,)
        block = self.resolver.query(query, self.names.inside())
        if len(block.outputs) != len(operands):
            raise InvalidStatement(Condition.OPERAND_COLUMNS, len(operands))
        if len(operands) > 1 and operator != "=":
            raise InvalidStatement(Condition.OPERAND_COLUMNS, 1)
        zone = self.settings.time_zone
        operands = tuple(
            in_utc(left, zone) if right.type.kind is Kind.TIMESTAMP else left
            for left, (right, _) in zip(operands, block.outputs)
        )
        for left, (right, _) in zip(operands, block.outputs):
            call(operator, left, right)  # collations that clash are an error now
        return self._subquery(operator, block, BOOLEAN, operands)

    def _subquery(
        self, operator: str, block: Any, type_: SqlType, operands: tuple[Expression, ...] = ()
    ) -> Expression:
        column = self._numbering.fresh(type_, operator != "exists")
        self.subqueries[column.index] = Subquery(column.index, operator, block, type_, operands)
        return column

    # -- functions over groups and windows

    def _aggregate(self, name: str, node: Any) -> Expression:
        """An aggregate of nothing but columns of a query around is one of that query, where it may have one; not by their aliases."""
        if self.names.parent is not None:
            function = read_aggregate(name, node, self.without_aggregates())
            used = all_columns((*function.arguments, *(each.expression for each in function.order)))
            own = {each.id for each in self.names.fields()} | self.subqueries.keys()
            if used and not used & own and not self._reads_alias(node):
                for names in self.names.around():
                    if used & {each.id for each in names.fields()}:
                        if names.aggregates is not None:
                            return names.aggregates(function)
                        if "ANSI" in self.settings.sql_mode:  # else it is of this query
                            raise InvalidStatement(Condition.INVALID_GROUP_FUNCTION)
                        break
            elif not used and self._collect is None:  # COUNT(*) in a WHERE counts for the query around
                for names in self.names.around():
                    if names.aggregates is not None:
                        return names.aggregates(function)
        if self._collect is None:
            raise InvalidStatement(Condition.INVALID_GROUP_FUNCTION)
        return self._collect(name, node, self)

    def _reads_alias(self, node: Any) -> bool:
        """Whether a name in it is an item of a SELECT list around."""
        query = node.find_ancestor(exp.Query)
        columns = [each for each in node.find_all(exp.Column) if not each.table and each.find_ancestor(exp.Query) is query]
        return any(not isinstance(each.this, exp.Star) and self.names.resolve(each.name, "", "", "field list").field.id == ALIAS for each in columns)

    def visit_window(self, node: Any, hint: SqlType | None) -> Expression:
        if self._windows is None:
            name = str(node.this.this) if isinstance(node.this, exp.Anonymous) else node.this.key
            raise InvalidStatement(Condition.WINDOW_MISPLACED, name)
        return self._windows(node, self)

    def _function(self, name: str, arguments: list[Any], node: Any) -> Expression:
        if name == "grouping" and len(arguments) == 1:
            if self._levels is None:
                raise InvalidStatement(Condition.INVALID_GROUP_FUNCTION)
            return self._levels(arguments[0], self)
        return super()._function(name, arguments, node)
