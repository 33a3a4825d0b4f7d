"""SELECT over at most one table: names resolved, aggregates collected, outputs described."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from controller.sql.aggregation import AGGREGATE_OFFSET, Grouping
from controller.sql.locking import locking_of
from controller.sql.output import output_column, table_column
from controller.sql.parameters import Parameters
from controller.sql.parse import syntax_error
from controller.sql.plan import OrderItem, OutputColumn, Select
from controller.sql.scope import (
    FIELD_LIST,
    GROUP_CLAUSE,
    HAVING_CLAUSE,
    ORDER_CLAUSE,
    WHERE_CLAUSE,
    Scope,
    Source,
    read,
)
from controller.sql.settings import Settings
from controller.sql.translate import Translator
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expression import Column, Expression, walk
from dataflow.functions import call
from dataflow.functions.casts import cast
from dataflow.types import BIGINT, BIGINT_UNSIGNED, STRINGS

_UNSUPPORTED = {
    "joins": "joins",
    "laterals": "LATERAL",
    "windows": "window functions",
    "with_": "WITH",
    "into": "SELECT … INTO",
    "qualify": "QUALIFY",
    "connect": "CONNECT BY",
    "sample": "TABLESAMPLE",
}


class SelectPlanner:
    """Plans one SELECT, clause by clause."""

    def __init__(self, catalog: Catalog, database: str | None, settings: Settings, parameters: Parameters) -> None:
        self._catalog = catalog
        self._database = database
        self._settings = settings
        self._parameters = parameters
        self._scope = Scope()
        self._grouping = Grouping(self._scope)
        self._strict = "ONLY_FULL_GROUP_BY" in settings.sql_mode

    def plan(self, node: Any) -> Select:
        node = _unwrapped(node)
        for name, feature in _UNSUPPORTED.items():
            if node.args.get(name):
                raise Unsupported(feature)
        source = self._source(node)
        self._scope = Scope(() if source is None else (source,))
        self._grouping = Grouping(self._scope)
        where = self._optional(node.args.get("where"), WHERE_CLAUSE)
        outputs, columns, aliases = self._outputs(node)
        self._group_by(node, outputs, aliases)
        having = self._having(node, aliases)
        order_by = self._order_by(node, outputs, aliases)
        if self._grouping.is_grouped:
            outputs = [self._over_groups(each, f"{n} SELECT list") for n, each in enumerate(outputs, 1)]
            order_by = [
                OrderItem(self._over_groups(each.expression, f"{n} ORDER BY"), each.descending)
                for n, each in enumerate(order_by, 1)
            ]
            having = None if having is None else self._over_groups(having, "1 HAVING clause")
        elif having is not None:
            # Without groups, HAVING is a second WHERE that may use aliases.
            where, having = having if where is None else call("and", where, having), None
        limit, offset = limits(node, self._translator(FIELD_LIST))
        modifiers = [str(each.name).upper() for each in node.args.get("operation_modifiers") or []]
        return Select(
            None if source is None else source.table,
            tuple(outputs),
            tuple(columns),
            where,
            tuple(self._grouping.group_by),
            tuple(self._grouping.aggregates),
            having,
            node.args.get("distinct") is not None,
            tuple(order_by),
            limit,
            offset,
            locking_of(node, self._catalog, self._database),
            "SQL_CALC_FOUND_ROWS" in modifiers,
        )

    def _source(self, node: Any) -> Source | None:
        clause = node.args.get("from_")
        if clause is None:
            return None
        return table_source(clause.this, self._catalog, self._database)

    def _translator(self, clause: str, **options: Any) -> Translator:
        return Translator(self._scope, clause, self._parameters, self._settings, **options)

    def _optional(self, node: Any, clause: str) -> Expression | None:
        return None if node is None else self._translator(clause).translate(node.this)

    def _over_groups(self, expression: Expression, place: str) -> Expression:
        return self._grouping.over_groups(expression, place, self._strict)

    def _outputs(self, node: Any) -> tuple[list[Expression], list[OutputColumn], dict[str, Expression]]:
        translator = self._translator(FIELD_LIST, collect=self._grouping.collect)
        outputs: list[Expression] = []
        columns: list[OutputColumn] = []
        aliases: dict[str, Expression] = {}
        for item in node.expressions:
            table = item.table if isinstance(item, exp.Column) else ""
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                for value in self._star(table):
                    outputs.append(value)
                    found = self._scope.column_at(value.index)
                    assert found is not None
                    columns.append(table_column(self._scope, value.index, found[1].name))
                continue
            output = translator.translate(item)
            outputs.append(output)
            columns.append(output_column(self._scope, item, output))
            if isinstance(item, exp.Alias | exp.Column):
                aliases.setdefault(columns[-1].name.lower(), output)
        return outputs, columns, aliases

    def _star(self, table: str) -> list[Column]:
        if not self._scope.sources:
            raise InvalidStatement(Condition.NO_TABLES_USED)
        sources = [source for source in self._scope.sources if not table or source.alias == table]
        if not sources:
            raise InvalidStatement(Condition.UNKNOWN_TABLE_DROP, table)
        return [
            read(source, position)
            for source in sources
            for position, column in enumerate(source.table.columns)
            if not column.invisible
        ]

    def _group_by(self, node: Any, outputs: list[Expression], aliases: dict[str, Expression]) -> None:
        clause = node.args.get("group")
        if clause is None:
            return
        if any(clause.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals", "all")):
            raise Unsupported("GROUP BY … WITH ROLLUP")
        translator = self._translator(GROUP_CLAUSE, aliases=aliases)
        for item in clause.expressions:
            found = self._positional(item, outputs, GROUP_CLAUSE) or translator.translate(item)
            if any(isinstance(each, Column) and each.index >= AGGREGATE_OFFSET for each in walk(found)):
                raise InvalidStatement(Condition.CANT_GROUP_ON, item.sql("mysql"))
            if found not in self._grouping.group_by:
                self._grouping.group_by.append(found)

    def _having(self, node: Any, aliases: dict[str, Expression]) -> Expression | None:
        clause = node.args.get("having")
        if clause is None:
            return None
        grouped = {
            found[1].name.lower(): each
            for each in self._grouping.group_by
            if isinstance(each, Column) and (found := self._scope.column_at(each.index)) is not None
        }
        translator = self._translator(
            HAVING_CLAUSE, collect=self._grouping.collect, aliases={**aliases, **grouped}, aliases_first=True
        )
        return translator.translate(clause.this)

    def _order_by(self, node: Any, outputs: list[Expression], aliases: dict[str, Expression]) -> list[OrderItem]:
        translator = self._translator(
            ORDER_CLAUSE, collect=self._grouping.collect, aliases=aliases, aliases_first=True
        )
        return [
            OrderItem(
                self._positional(item.this, outputs, ORDER_CLAUSE) or translator.translate(item.this),
                bool(item.args.get("desc")),
            )
            for item in order_items(node)
        ]

    def _positional(self, node: Any, outputs: list[Expression], clause: str) -> Expression | None:
        """ORDER BY 2 is the second output; other constants stand for themselves."""
        if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
            return None
        number = int(node.this)
        if not 1 <= number <= len(outputs):
            raise InvalidStatement(Condition.UNKNOWN_COLUMN, number, clause)
        return outputs[number - 1]


def _unwrapped(node: Any) -> Any:
    """A SELECT out of the parentheses around it, if nothing else is there."""
    while isinstance(node, exp.Subquery) and not any(value for name, value in node.args.items() if name != "this"):
        node = node.this
    if isinstance(node, exp.SetOperation):
        raise Unsupported(type(node).__name__.upper())
    if not isinstance(node, exp.Select):
        raise Unsupported(f"{type(node).__name__} statements")
    return node


def table_source(node: Any, catalog: Catalog, database: str | None) -> Source | None:
    """The table a FROM, UPDATE or DELETE names, under its alias; None for DUAL."""
    while isinstance(node, exp.Subquery | exp.Paren) and isinstance(node.this, exp.Table):
        node = node.this
    if isinstance(node, exp.Subquery):
        raise Unsupported("derived tables")
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise syntax_error(node.sql("mysql"), 0)
    if node.args.get("joins"):
        raise Unsupported("joins")
    if node.args.get("partition"):
        raise Unsupported("PARTITION (…)")
    name, given = node.name, node.text("db")
    if not given and name.upper() == "DUAL" and not node.this.args.get("quoted"):
        return None
    table = catalog.table(given or database, name)
    return Source(node.alias or name, table, 0, table.database)


def order_items(node: Any) -> list[Any]:
    clause = node.args.get("order")
    return [] if clause is None else list(clause.expressions)


def limits(node: Any, translator: Translator) -> tuple[Expression | None, Expression | None]:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is not None and not isinstance(limit, exp.Limit):
        raise Unsupported("FETCH")
    count = None if limit is None else _limit(limit.expression, translator)
    start = limit.args.get("offset") if limit is not None else None
    start = start if start is not None else (None if offset is None else offset.expression)
    return count, None if start is None else _limit(start, translator)


def _limit(node: Any, translator: Translator) -> Expression:
    if not isinstance(node, exp.Placeholder) and not (isinstance(node, exp.Literal) and node.this.isdigit()):
        raise syntax_error(node.sql("mysql"), 0)
    found = translator.translate(node, BIGINT_UNSIGNED)
    if found.type.kind not in STRINGS:
        return found
    if not translator.parameters.are_given:
        raise syntax_error(node.sql("mysql"), 0)
    return cast(found, BIGINT)  # some drivers send all parameters as texts
