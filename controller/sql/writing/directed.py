"""UPDATE and DELETE that need a query to find their rows: over several tables, or with subqueries.

The query selects the rows of the tables to be changed, and the new values that more than the
row itself is needed for; what happens to each row is then planned as for one table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from controller.catalog import Catalog
from controller.sql.expressions.scope import FIELD_LIST, Scope, TableInSight
from controller.sql.expressions.stored_zone import in_zone
from controller.sql.expressions.translate import Translator
from controller.sql.parameters import Parameters
from controller.sql.plan import Assignment, Delete, Directed, Query, Update
from controller.sql.query import plan_query
from controller.sql.query.expressions import UNNAMED
from controller.sql.query.names import NamedSource, Names
from controller.sql.query.resolve import Resolver
from controller.sql.query.sources import FromClause
from controller.sql.settings import Settings
from controller.sql.text.parse import syntax_error
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions import expression
from dataflow.schema import Table

if TYPE_CHECKING:
    from controller.sql.writing.writes import WritePlanner


def is_directed(node: Any) -> bool:
    """Whether an UPDATE or DELETE is about more than one table and its own rows."""
    tables = node.args.get("tables") or []
    source = node.this
    return bool(
        node.args.get("using")
        or node.args.get("with_")
        or len(tables) > 1
        or (isinstance(source, exp.Table) and source.args.get("joins"))
        or not isinstance(source, exp.Table)
        or any(True for _ in node.find_all(exp.Query))
    )


class DirectedPlanner:
    def __init__(
        self, writes: WritePlanner, catalog: Catalog, database: str | None, settings: Settings, parameters: Parameters
    ) -> None:
        self._writes = writes
        self._catalog = catalog
        self._database = database
        self._settings = settings
        self._parameters = parameters

    def update(self, node: Any) -> Directed:
        names = self._names(node.this, node)
        single = len(names.sources) == 1
        self._check_clauses(node, "UPDATE", single)
        targets: dict[str, tuple[NamedSource, Table, list[tuple[int, Any]]]] = {}
        for each in node.expressions:
            if not isinstance(each, exp.EQ) or not isinstance(each.this, exp.Column):
                raise syntax_error(each.sql("mysql"), 0)
            target = each.this
            field = names.resolve(target.name, target.table, target.text("db"), FIELD_LIST).field
            source = next(found for found in names.sources if field in found.fields)
            table = self._table(source, "UPDATE", node.this)
            _, _, assigned = targets.setdefault(source.alias, (source, table, []))
            self._parameters.use("UPDATE", table, source.fields.index(field))
            assigned.append((source.fields.index(field), each.expression))
        self._check_keys(targets)
        items: list[Any] = []
        starts = {alias: self._row(items, source, table) for alias, (source, table, _) in targets.items()}
        planned: dict[str, list[tuple[int, Any, int | None]]] = {}
        for alias, (_, _, assigned) in targets.items():
            for position, value in assigned:
                place = None
                if not is_default(value) and (not single or any(True for _ in value.find_all(exp.Query))):
                    place = len(items)
                    items.append(exp.alias_(value.copy(), f"value{place}"))
                planned.setdefault(alias, []).append((position, value, place))
        query = self._query(node, node.this, items)
        changes = []
        for alias, (source, table, _) in targets.items():
            assignments = tuple(self._assignment(source, table, query, *each) for each in planned[alias])
            ignore = bool(node.meta.get("ignore"))
            relations = self._writes.relations(table)
            changes.append((Update(table, assignments, None, ignore=ignore, relations=relations), starts[alias]))
        return Directed(query, tuple(changes))

    def delete(self, node: Any) -> Directed:
        using = node.args.get("using")
        tables = node.args.get("tables") or []
        source_node = using[0] if using else node.this
        names = self._names(source_node, node)
        self._check_clauses(node, "DELETE", not tables and not using)
        wanted = [node.this, *(each.this for each in node.this.args.get("joins") or [])] if using else tables or [node.this]
        items: list[Any] = []
        changes = []
        for each in wanted:
            name = each.alias or each.name
            source = next((found for found in names.sources if found.alias == name), None)
            if source is None:
                raise InvalidStatement(Condition.UNKNOWN_TABLE_MULTI_DELETE, name)
            table = self._table(source, "DELETE", source_node)
            start = self._row(items, source, table)
            changes.append((Delete(table, None, relations=self._writes.relations(table), ignore=bool(node.meta.get("ignore"))), start))
        return Directed(self._query(node, source_node, items), tuple(changes))

    # -- parts

    def _names(self, source: Any, node: Any) -> Names:
        """What the FROM of the statement has in sight."""
        resolver = Resolver(self._catalog, self._settings, self._parameters)
        names = resolver.with_common(node, Names(None, self._database))
        FromClause(resolver, names, {}).resolve(source, [])
        return names

    def _check_clauses(self, node: Any, verb: str, single: bool) -> None:
        for name, words in (("order", "ORDER BY"), ("limit", "LIMIT")):
            if node.args.get(name) is not None and not single:
                raise InvalidStatement(Condition.WRONG_USAGE, verb, words)

    def _check_keys(self, targets: dict[str, tuple[NamedSource, Table, list[tuple[int, Any]]]]) -> None:
        """A row that is changed under two names has to keep its primary key."""
        first: dict[int, str] = {}
        for alias, (_, table, _) in targets.items():
            other = first.setdefault(table.id, alias)
            if other == alias:
                continue
            key = {part.column_id for part in table.primary_key.parts}
            both = (*targets[other][2], *targets[alias][2])
            if any(table.columns[position].id in key for position, _ in both):
                raise InvalidStatement(Condition.MULTI_UPDATE_KEY_CONFLICT, other, alias)

    def _table(self, source: NamedSource, verb: str, node: Any) -> Table:
        """The table that rows of `source` are rows of, not those of a view that is left in the statement."""
        origin = source.fields[0].output
        table = None
        if source.database and len(source.fields) and origin.original_table:
            table = self._catalog.find_table(source.database, origin.original_table)
        named = next((each for each in node.find_all(exp.Table) if (each.alias or each.name) == source.alias), None)
        is_table = named is not None and self._catalog.find_table(named.text("db") or self._database or "", named.name) is not None
        if table is None or not is_table or len(table.columns) != len(source.fields) or table.id < 0:
            raise InvalidStatement(Condition.NON_UPDATABLE_TABLE, source.alias, verb)
        table = in_zone(table, self._settings.time_zone)
        checks = named.meta.get("checks") if named is not None and verb == "UPDATE" else None
        in_sight = TableInSight(source.alias, table, 0, table.database)
        return self._writes.checked(in_sight, *checks).table if checks is not None and checks[1] else table

    def _row(self, items: list[Any], source: NamedSource, table: Table) -> int:
        """Where in the query's outputs the table's row begins; its columns are added there."""
        start = len(items)
        for column in table.columns:
            name = exp.to_identifier(column.name, quoted=True)
            read = exp.column(name, table=exp.to_identifier(source.alias, quoted=True))
            read.meta[UNNAMED] = True
            items.append(exp.alias_(read, f"column{len(items)}"))
        return start

    def _query(self, node: Any, source: Any, items: list[Any]) -> Query:
        select = exp.Select(expressions=items)
        select.set("from_", exp.From(this=source.copy()))
        for name in ("where", "order", "limit", "with_"):
            clause = node.args.get(name)
            if clause is not None:
                select.set(name, clause.copy())
        return plan_query(select, self._catalog, self._database, self._settings, self._parameters, hidden=True)

    def _assignment(
        self, source: NamedSource, table: Table, query: Query, position: int, value: Any, place: int | None
    ) -> Assignment:
        if is_default(value):
            return Assignment(position, expression.Literal(None, table.columns[position].type), is_default=True)
        scope = Scope((TableInSight(source.alias, table, 0, table.database),))
        translator = Translator(scope, FIELD_LIST, self._parameters, self._settings)
        if place is None:
            found = self._writes.value(table, position, value, translator)
            assert found is not None
            return Assignment(position, found)
        column = table.columns[position]
        if column.generated is not None:
            raise InvalidStatement(Condition.GENERATED_VALUE, column.name, table.name)
        return Assignment(position, expression.Column(len(table.columns) + place, query.outputs[place].type))


def is_default(node: Any) -> bool:
    """Whether a value is the keyword DEFAULT, which sqlglot reads as a name."""
    if isinstance(node, exp.Column):
        return not node.table and not node.this.args.get("quoted") and node.name.upper() == "DEFAULT"
    return isinstance(node, exp.Var) and node.name.upper() == "DEFAULT"
