"""INSERT, REPLACE, UPDATE and DELETE over one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog, CatalogView
from controller.sql.clauses import limits, order_items, table_source
from controller.sql.definitions.foreign_keys import related_tables
from controller.sql.expressions.constants import as_stored
from controller.sql.expressions.facts import TODAY
from controller.sql.expressions.scope import FIELD_LIST, ORDER_CLAUSE, WHERE_CLAUSE, Scope, TableInSight, read
from controller.sql.expressions.stored_zone import in_zone
from controller.sql.expressions.translate import Translator
from controller.sql.expressions.user_variables import begun
from controller.sql.expressions.zone import dated
from controller.sql.parameters import Parameters
from controller.sql.plan import (
    Assignment,
    Delete,
    Directed,
    Insert,
    OnDuplicate,
    Query,
    Update,
)
from controller.sql.query import plan_query
from controller.sql.settings import Settings
from controller.sql.text.parse import syntax_error
from controller.sql.writing.directed import DirectedPlanner, is_default, is_directed
from controller.sql.writing.found_values import FoundValues, FoundValueTranslator, Marks
from controller.sql.writing.updatable_views import Checks, written_through
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Expression, Literal
from dataflow.functions import call
from dataflow.plan.node import Order
from dataflow.schema import VIEW_CHECK, Check, Table
from dataflow.values.types import NULL, SqlType

STRICT = frozenset({"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"})


class WritePlanner:
    """Plans the statements that change one table."""

    def __init__(self, catalog: Catalog, database: str | None, settings: Settings, parameters: Parameters) -> None:
        self._catalog = catalog
        self._database = database
        self._settings = settings
        self._parameters = parameters
        self.views: list[CatalogView] = []
        """The views that the statement writes through."""

    def _translator(self, scope: Scope, clause: str, **options: Any) -> Translator:
        return Translator(scope, clause, self._parameters, self._settings, **options)

    def relations(self, table: Table) -> tuple[Table, ...]:
        return related_tables(table, self._catalog) if self._settings.foreign_key_checks else ()

    def _target(self, node: Any) -> TableInSight:
        source = table_source(node, self._catalog, self._database)
        if source is None:
            raise InvalidStatement(Condition.NO_TABLES_USED)
        source = replace(source, table=in_zone(source.table, self._settings.time_zone))
        found = node.meta.get("checks")
        return source if found is None or not found[1] else self.checked(source, *found)

    def checked(self, source: TableInSight, view: CatalogView, checks: Checks) -> TableInSight:
        """The table with the conditions of views WITH CHECK OPTION among its constraints."""
        parameters = Parameters([])
        translator = Translator(Scope((source,)), WHERE_CLAUSE, parameters, self._settings)
        name = f"{VIEW_CHECK}{view.database}.{view.name}"
        added = [Check(name, "", call("is true", translator.translate(each))) for each in checks]
        if parameters.facts:
            raise Unsupported("the session's state in a view WITH CHECK OPTION")
        return replace(source, table=replace(source.table, checks=(*source.table.checks, *added)))

    # -- INSERT and REPLACE

    def insert(self, node: Any) -> Insert:
        node = written_through(node, self._catalog, self._database, self.views)
        target, names = node.this, None
        if isinstance(target, exp.Schema):
            target, names = target.this, [each.name for each in target.expressions] or None  # () is all columns
        if node.args.get("returning"):
            raise Unsupported("RETURNING")
        source = self._target(target)
        table = source.table
        columns = self._columns(table, names)
        given, conflict = node.expression, node.args.get("conflict")
        found = FoundValues()
        assigned = [] if conflict is None else [found.without_subqueries(each) for each in conflict.expressions]
        nodes = [found.without_subqueries(each) for each in given.expressions] if isinstance(given, exp.Values) else []
        scope = self._duplicate_scope(node, source, given)
        if isinstance(given, exp.Select):
            assigned = [found.without_columns(each, scope, given, self._named_table) for each in assigned]
            if found.columns:
                given = given.copy()
                given.set("expressions", [*given.expressions, *found.columns])
        before = self._select(exp.Select(expressions=found.subqueries)) if found.subqueries else None
        rows: tuple[tuple[Expression | None, ...], ...] = ()
        select: Query | None = None
        if isinstance(given, exp.Values):
            marks = found.marks(len(table.columns), before, None)
            rows = tuple(self._row(source, columns, each, number, marks) for number, each in enumerate(nodes, 1))
            if rows and names is None and all(not row for row in rows):
                columns = ()
        elif isinstance(given, exp.Query):
            select = self._select(given)
            if len(select.outputs) != len(columns) + len(found.columns):
                raise InvalidStatement(Condition.COLUMN_COUNT_MISMATCH, 1)
            select = self._of_today(select, [table.columns[position].type for position in columns])
            for position in () if self._ignores_generated else columns:
                if table.columns[position].generated is not None:
                    raise InvalidStatement(Condition.GENERATED_VALUE, table.columns[position].name, table.name)
        else:
            raise syntax_error("", 0)
        ignore = bool(node.args.get("ignore"))
        on_update = self._on_duplicate(assigned, source, scope, found.marks(2 * len(table.columns), before, select))
        if node.args.get("overwrite"):
            action = OnDuplicate.REPLACE
        elif on_update:
            action = OnDuplicate.UPDATE
        else:
            action = OnDuplicate.IGNORE if ignore else OnDuplicate.ERROR
        seen = target.meta.get("seen")
        is_silent = seen is not None and any(each.auto_increment and each.name.lower() not in seen for each in table.columns)
        return Insert(table, columns, rows, action, on_update, select, ignore, self.relations(table), before, is_silent)

    def _of_today(self, select: Query, targets: list[SqlType]) -> Query:
        """Its TIMEs that are to be stored as dates are those times of today."""
        outputs, shown = list(select.outputs), list(select.columns)
        for place, target in enumerate(targets):
            outputs[place] = dated([outputs[place], Literal(None, target)], lambda: self._parameters.fact(*TODAY))[0]
            shown[place] = replace(shown[place], type=outputs[place].type)
        return select if tuple(outputs) == select.outputs else replace(select, outputs=tuple(outputs), columns=tuple(shown))

    def _select(self, node: Any) -> Query:
        return plan_query(node, self._catalog, self._database, self._settings, self._parameters)

    def _columns(self, table: Table, names: list[str] | None) -> tuple[int, ...]:
        if names is None:
            found = [position for position, column in enumerate(table.columns) if not column.invisible]
            for position in found:
                self._parameters.use("INSERT", table, position)
            self._parameters.uses.add(("INSERT", table.database, table.name, "*"))
            return tuple(found)
        scope = Scope((TableInSight(table.name, table, 0, table.database),))
        found = []
        for name in names:
            _, position = scope.resolve(name, "", "", FIELD_LIST)
            self._parameters.use("INSERT", table, position)
            if position in found:
                raise InvalidStatement(Condition.COLUMN_SPECIFIED_TWICE, name)
            found.append(position)
        return tuple(found)

    def _row(
        self, source: TableInSight, columns: tuple[int, ...], node: Any, number: int, marks: Marks
    ) -> tuple[Expression | None, ...]:
        values = node.expressions
        if not values:
            return ()
        if len(values) != len(columns):
            raise InvalidStatement(Condition.COLUMN_COUNT_MISMATCH, number)
        translator = FoundValueTranslator(Scope((source,)), FIELD_LIST, self._parameters, self._settings)
        translator.marks = marks
        return tuple(
            self._inserted(source.table, position, value, translator) for position, value in zip(columns, values)
        )

    def _inserted(self, table: Table, position: int, node: Any, translator: Translator) -> Expression | None:
        if self._ignores_generated and table.columns[position].generated is not None:
            if not is_default(node):
                translator.translate(node)  # its parameters are still counted
            return None
        found = self.value(table, position, node, translator)
        return begun(found) if found is not None and self._parameters.sequences else found

    @property
    def _ignores_generated(self) -> bool:
        """MariaDB's dumps give values for generated columns and turn strictness off to have them ignored."""
        return not STRICT & self._settings.sql_mode

    def value(self, table: Table, position: int, node: Any, translator: Translator) -> Expression | None:
        """The value for a column, or None for DEFAULT."""
        column = table.columns[position]
        if is_default(node):
            return None
        if column.generated is not None:
            raise InvalidStatement(Condition.GENERATED_VALUE, column.name, table.name)
        found = translator.dated([translator.translate(node, column.type), Literal(None, column.type)])[0]
        return as_stored(found, column.type)

    def _named_table(self, node: Any) -> Table | None:
        return self._catalog.find_table(node.text("db") or self._database or "", node.name)

    def _duplicate_scope(self, node: Any, source: TableInSight, given: Any) -> Scope:
        """What ON DUPLICATE KEY UPDATE has in sight: the existing row, followed by the one that was to be inserted."""
        width = len(source.table.columns)
        sources = [source, TableInSight("", source.table, width, exact=True)]
        alias = given.args.get("alias") if isinstance(given, exp.Values) else None
        if alias is not None and alias.name:
            names = [each.name for each in alias.args.get("columns") or []]
            renamed = [column.name for column in source.table.columns]
            target = node.this
            written = [each.name for each in target.expressions] if isinstance(target, exp.Schema) else None
            for position, name in zip(self._columns(source.table, written), names):
                renamed[position] = name
            sources.append(TableInSight(alias.name, source.table, width, names=tuple(renamed), exact=not names))
        return Scope(tuple(sources))

    def _on_duplicate(self, nodes: list[Any], source: TableInSight, scope: Scope, marks: Marks) -> tuple[Assignment, ...]:
        inserted = Scope((TableInSight("", source.table, len(source.table.columns)),))
        translator = FoundValueTranslator(
            scope,
            FIELD_LIST,
            self._parameters,
            self._settings,
            values=lambda name: read(*inserted.resolve(name, "", "", FIELD_LIST)),
        )
        translator.marks = marks
        return self._assignments(source, nodes, translator)

    # -- UPDATE and DELETE

    def update(self, node: Any) -> Update | Directed:
        node = written_through(node, self._catalog, self._database, self.views)
        if node.args.get("returning"):
            raise syntax_error(node.args["returning"].sql("mysql"), 0)
        if is_directed(node):
            return DirectedPlanner(self, self._catalog, self._database, self._settings, self._parameters).update(node)
        source = self._single(node, node.this)
        scope = Scope((source,))
        assignments = self._assignments(source, node.expressions, self._translator(scope, FIELD_LIST))
        where, order_by, limit = self._restriction(node, scope)
        ignore = bool(node.meta.get("ignore"))
        return Update(source.table, assignments, where, order_by, limit, ignore, self.relations(source.table))

    def delete(self, node: Any) -> Delete | Directed:
        node = written_through(node, self._catalog, self._database, self.views)
        if node.args.get("returning"):
            raise Unsupported("RETURNING")
        if is_directed(node):
            return DirectedPlanner(self, self._catalog, self._database, self._settings, self._parameters).delete(node)
        source = self._single(node, node.this)
        for each in node.args.get("tables") or []:
            if each.name != source.alias:
                raise InvalidStatement(Condition.UNKNOWN_TABLE_DROP, each.name)
        where, order_by, limit = self._restriction(node, Scope((source,)))
        return Delete(source.table, where, order_by, limit, self.relations(source.table), bool(node.meta.get("ignore")))

    def _single(self, node: Any, table: Any) -> TableInSight:
        if node.args.get("from_") or node.args.get("with_"):
            raise Unsupported("joins")
        return self._target(table)

    def _restriction(self, node: Any, scope: Scope) -> tuple[Expression | None, tuple[Order, ...], Expression | None]:
        clause = node.args.get("where")
        where = None if clause is None else self._translator(scope, WHERE_CLAUSE).translate(clause.this)
        ordering = self._translator(scope, ORDER_CLAUSE)
        order_by = tuple(
            Order(ordering.translate(item.this), bool(item.args.get("desc"))) for item in order_items(node)
        )
        limit, offset = limits(node, ordering)
        if offset is not None:
            raise syntax_error("", 0)
        return where, order_by, limit

    def _assignments(self, source: TableInSight, nodes: list[Any], translator: Translator) -> tuple[Assignment, ...]:
        table = source.table
        found: list[Assignment] = []
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                raise syntax_error(node.sql("mysql"), 0)
            target = node.this
            _, position = Scope((source,)).resolve(target.name, target.table, target.text("db"), FIELD_LIST)
            self._parameters.use("UPDATE", table, position)
            value = self.value(table, position, node.expression, translator)
            if value is None:
                found.append(Assignment(position, Literal(None, NULL), is_default=True))
            else:
                found.append(Assignment(position, value))
        return tuple(found)
