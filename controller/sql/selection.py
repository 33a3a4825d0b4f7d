"""Which way a SELECT goes: over one table directly, or through the query graph."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from controller.sql.operators import AGGREGATES
from controller.sql.parameters import Parameters
from controller.sql.plan import Query, Select
from controller.sql.query import plan_query
from controller.sql.select import SelectPlanner
from controller.sql.settings import Settings


def plan_select(
    tree: Any, catalog: Catalog, database: str | None, settings: Settings, parameters: Parameters, stored: bool = False
) -> Select | Query:
    """`stored`: a SELECT over a table in memory goes through the query graph, whatever it is."""
    if is_simple(tree, catalog, database):
        found = SelectPlanner(catalog, database, settings, parameters).plan(tree)
        if not stored or found.table is None or found.table.id >= 0:
            return found
    return plan_query(tree, catalog, database, settings, parameters)


def is_simple(tree: Any, catalog: Catalog, database: str | None) -> bool:
    """Whether the SELECT reads at most one base table and has no other query inside."""
    while isinstance(tree, exp.Subquery) and not any(value for name, value in tree.args.items() if name != "this"):
        tree = tree.this
    if not isinstance(tree, exp.Select) or any(tree.args.get(name) for name in ("joins", "with_", "windows", "laterals")):
        return False
    if not tree.args.get("locks") and _is_worth_a_view(tree):
        return False
    group = tree.args.get("group")
    if group is not None and any(value for name, value in group.args.items() if name != "expressions"):
        return False
    clause = tree.args.get("from_")
    if clause is not None:
        source = clause.this
        if not isinstance(source, exp.Table) or source.args.get("joins") or not isinstance(source.this, exp.Identifier):
            return False
        if (source.text("db") or database, source.name) in catalog.views:
            return False
    return not any(each is not tree for each in tree.find_all(exp.Query, exp.Window, exp.Any, exp.All))


def _is_worth_a_view(tree: exp.Select) -> bool:
    """Whether the answer takes more than finding rows: groups, or the first rows of an order."""
    if tree.args.get("from_") is None:
        return False
    return _is_grouped(tree) or (tree.args.get("order") is not None and tree.args.get("limit") is not None)


def _is_grouped(tree: exp.Select) -> bool:
    if tree.args.get("group") is not None or tree.find(exp.AggFunc) is not None:
        return True
    called = {each.name.lower() for each in tree.find_all(exp.Anonymous)}
    return not called.isdisjoint(AGGREGATES)
