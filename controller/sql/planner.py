"""From statements to plans, through a cache.

A plan depends on the template, the default database, the session's settings, the types of the
parameter values, and the version of the one table it names. The cache checks the last when a
plan is asked for, so DDL needs to invalidate nothing, unless it is about temporary tables, which hide others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog, CatalogView
from controller.sql.definitions.temporary import with_temporary
from controller.sql.expressions.full_text import with_matches
from controller.sql.expressions.user_variables import assignments_of
from controller.sql.parameters import Parameters
from controller.sql.plan import Directed, Insert, Plan, Query, Statement
from controller.sql.query import plan_query
from controller.sql.settings import Settings
from controller.sql.text import parameter_types
from controller.sql.text.depth import deeply
from controller.sql.text.parse import parameter_count, parse, syntax_error
from controller.sql.text.template import canonical_text, reader
from controller.sql.writing.writes import WritePlanner
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table
from dataflow.values.result_limits import planning_for
from dataflow.values.types import SqlType, Value, text

PLANS_LENGTH_MAX = 32 << 20
"""All plans kept have statements of at most so many characters; beyond that, all are dropped."""
PLAN_LENGTH = 3000
"""What a plan counts for besides its statement."""
KEPT_LENGTH_MAX = 50_000
"""Statements with more characters are planned each time. A list of 125,000 values makes 600,000 objects, and whatever the collector visits holds up everybody."""

READINGS = 4
"""To parse and plan a text takes so much longer than to find its literals."""
NESTING_LENGTH = 20

_VERBS = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "VALUES", "TABLE"})


def plan(
    sql: str,
    catalog: Catalog,
    database: str | None,
    settings: Settings,
    types: Sequence[SqlType | None] | None = None,
    batch: tuple[int, int] | None = None,
    is_prepared: bool = False,
) -> Plan:
    """Plan a statement whose parameters are `?`.

    `types` are those of the values, one for each `?`; without them (PREPARE) they are inferred
    from where each parameter stands. Those of one that `is_prepared` are not literals of its text.
    """
    catalog = with_temporary(catalog, settings.owner, settings.unborn)
    tree = parse_statement(sql, settings.sql_mode)
    count = sum(map(parameter_count, tree.find_all(exp.Placeholder)))
    if types is not None and len(types) != count:
        raise syntax_error(sql, sql.find("?"))  # a `?` in a text statement
    assigned, initial = assignments_of(tree) if ":=" in sql else (frozenset(), [])

    @planning_for(settings.results)
    def planned() -> Plan:
        parameters = Parameters(types if types is not None else [None] * count, is_prepared)
        parameters.assigned = assigned
        first = tuple([plan_query(each, catalog, database, settings, parameters) for each in initial])
        views: list[CatalogView] = []
        statement = _statement(with_matches(tree, catalog, database), catalog, database, settings, parameters, views)
        known = tuple([each or text() for each in parameters.types])
        return Plan(statement, known, tuple(parameters.facts), batch, first, tuple(views), sql, frozenset(parameters.uses))

    return deeply(planned)


def effort(sql: str) -> int:
    """How long it takes to plan a statement: as long as to read so many characters."""
    return READINGS * (len(sql) + NESTING_LENGTH * sql.count("("))


def parse_statement(sql: str, modes: frozenset[str] = frozenset()) -> Any:
    """The tree of a statement that is planned; others are a syntax error here."""
    words = sql.split(None, 1)
    if words and words[0].isalpha() and words[0].upper() not in _VERBS:
        raise syntax_error(sql, 0)
    tree = parse(sql, modes)
    if isinstance(tree, exp.Values):  # VALUES ROW(1), ROW(2)
        tree.set("alias", exp.TableAlias(this=exp.to_identifier("rows")))
        tree = exp.select("*").from_(tree)
    return tree


def _statement(
    tree: Any, catalog: Catalog, database: str | None, settings: Settings, parameters: Parameters, views: list[CatalogView]
) -> Statement:
    writes = WritePlanner(catalog, database, settings, parameters)
    writes.views = views
    match tree:
        case exp.Insert():
            return writes.insert(tree)
        case exp.Update():
            return writes.update(tree)
        case exp.Delete():
            return writes.delete(tree)
        case exp.Query():
            return plan_query(tree, catalog, database, settings, parameters)
        case _:
            raise syntax_error(tree.sql("mysql"), 0)


def tables_of(found: Plan) -> tuple[Table, ...]:
    """The tables whose definition the plan relies on."""
    statement = found.statement
    if isinstance(statement, Query):
        return statement.tables
    if isinstance(statement, Directed):
        return (*statement.query.tables, *(table for change, _ in statement.changes for table in change.relations))
    tables: tuple[Table, ...] = statement.relations or (statement.table,)
    if isinstance(statement, Insert):
        for select in (statement.select, statement.before):
            tables = tables if select is None else (*tables, *select.tables)
    return tables


def written_tables(found: Plan) -> tuple[Table, ...]:
    """The tables whose rows the plan changes."""
    statement = found.statement
    if isinstance(statement, Directed):
        return tuple([change.table for change, _ in statement.changes])
    return () if isinstance(statement, Query) else (statement.table,)


def views_of(found: Plan) -> tuple[CatalogView, ...]:
    """The named views that the plan reads, or writes through."""
    return found.views + _views_read(found.statement)


def _views_read(statement: Statement) -> tuple[CatalogView, ...]:
    if isinstance(statement, Insert):
        return tuple(view for query in (statement.select, statement.before) if query is not None for view in query.views)
    query = statement.query if isinstance(statement, Directed) else statement
    return query.views if isinstance(query, Query) else ()


class PlanCache:
    """Plans by everything they depend on; one for each process that plans.

    What is not known yet is planned by `work`, which is given how long it takes and what does it.
    """

    def __init__(self, work: Callable[[int, Callable[[], Plan]], Plan] = lambda effort, function: function()) -> None:
        self._work = work
        self._plans: dict[tuple[str, str | None, Settings, tuple[str, ...] | None], Plan] = {}
        self._length = 0

    def plan_text(
        self, sql: str, catalog: Catalog, database: str | None, settings: Settings
    ) -> tuple[Plan, Sequence[Value]]:
        """The plan of a text statement, and the values of its parameters."""
        reads = reader(settings.ansi_quotes, settings.backslash_escapes)
        reading = reads.read(sql)
        codes = parameter_types.codes_of(reading)
        if codes is None:
            reading = reads.read(sql, fold=False)
            codes = parameter_types.codes_of(reading)
            assert codes is not None
        template = reading.template
        key = (template.text, database, settings, codes)
        found = self._plans.get(key)
        if found is None or not _is_valid(found, catalog):
            known = {code: parameter_types.type_of(code, settings.collation) for code in set(codes)}
            types = [known[code] for code in codes]

            def planned() -> Plan:
                try:
                    return plan(template.text, catalog, database, settings, types, template.batch)
                except InvalidStatement as error:
                    if error.condition is Condition.PARSE_ERROR:
                        # MySQL quotes the statement as it was sent.
                        plan(canonical_text(sql, settings), catalog, database, settings, ())
                    raise

            found = self._work(effort(template.text), planned)
            self._keep(key, found)
        return found, parameter_types.plain_values(reading.values, codes)

    def plan_prepared(
        self,
        sql: str,
        catalog: Catalog,
        database: str | None,
        settings: Settings,
        codes: tuple[str, ...] | None = None,
    ) -> Plan:
        """The plan of a statement with `?`: for PREPARE without `codes`, for EXECUTE with them."""
        key = (sql, database, settings, codes)
        found = self._plans.get(key)
        if found is None or not _is_valid(found, catalog):
            types = None
            if codes is not None:
                types = [parameter_types.type_of(code, settings.collation) for code in codes]
            text = canonical_text(sql, settings)
            found = self._work(effort(text), lambda: plan(text, catalog, database, settings, types, is_prepared=True))
            self._keep(key, found)
        return found

    def forget(self, owner: str) -> None:
        """The session's temporary tables are others now: names may mean something else."""
        self._plans = {key: plan for key, plan in list(self._plans.items()) if key[2].owner != owner}

    def _keep(self, key: tuple[str, str | None, Settings, tuple[str, ...] | None], found: Plan) -> None:
        if len(key[0]) > KEPT_LENGTH_MAX:
            return
        self._length += len(key[0]) + PLAN_LENGTH
        if self._length > PLANS_LENGTH_MAX:
            self._plans.clear()
            self._length = len(key[0]) + PLAN_LENGTH
        self._plans[key] = found


def _is_valid(found: Plan, catalog: Catalog) -> bool:
    for table in tables_of(found):
        now = catalog.tables.get(table.id)
        if now is not table and (now is None or now.version != table.version):
            return False
    return all(catalog.views.get((view.database, view.name)) == view for view in views_of(found))
