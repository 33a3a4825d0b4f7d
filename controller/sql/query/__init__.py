"""Any SELECT as a graph of dataflow nodes and what is left to do with their rows.

The passes, in order: `resolve` with `selects` (names, types, the query graph), `ordering`, `building` with `correlation`,
`subqueries` and `groups` (nodes in canonical form), `keys` (parameters apart). Nothing here
knows how nodes are kept or evaluated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from controller.sql.expressions.translate import Parameters
from controller.sql.locking import locking_of
from controller.sql.plan import Query
from controller.sql.query.documents import prior_documents
from controller.sql.query.keys import finish
from controller.sql.query.names import Names
from controller.sql.query.ordering import keep_order
from controller.sql.query.resolve import Resolver
from controller.sql.settings import Settings

__all__ = ["plan_query"]


def plan_query(
    tree: Any,
    catalog: Catalog,
    database: str | None,
    settings: Settings,
    parameters: Parameters,
    hidden: bool = False,
) -> Query:
    """`hidden`: the query may name the primary keys that tables have without having declared one."""
    resolver = Resolver(catalog, settings, parameters)
    block = resolver.query(tree, Names(None, database, hidden=hidden))
    keep_order(block, resolver.numbering)
    found = finish(block, resolver.numbering, tuple(resolver.tables.values()))
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    modifiers = [str(each.name).upper() for each in first.args.get("operation_modifiers") or []]
    views = tuple(dict.fromkeys(resolver.views))
    locking = locking_of(tree, catalog, database)
    recursions = tuple((rows.table, recursion) for _, rows, recursion in resolver.recursions.found.values())
    documents, later = prior_documents(resolver)
    if recursions or documents or later:
        found = replace(found, prior=(*documents, *recursions, *later, *found.prior), shareable=False)
    return replace(found, count_found_rows="SQL_CALC_FOUND_ROWS" in modifiers, views=views, locking=locking)
