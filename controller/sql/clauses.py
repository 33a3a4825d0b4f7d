"""Clauses that several statements have: the table they name, ORDER BY, LIMIT."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from controller.sql.expressions.scope import TableInSight
from controller.sql.expressions.translate import Translator
from controller.sql.text.parse import syntax_error
from dataflow.errors import Unsupported
from dataflow.expressions.expression import Expression
from dataflow.functions.casts import cast
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, STRINGS


def table_source(node: Any, catalog: Catalog, database: str | None) -> TableInSight | None:
    """The table that an INSERT, UPDATE or DELETE names, under its alias; None for DUAL."""
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
    return TableInSight(node.alias or name, table, 0, table.database)


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
