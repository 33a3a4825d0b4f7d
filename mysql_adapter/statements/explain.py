"""EXPLAIN of a statement: MySQL's table by default, the plan as a tree or for Graphviz on demand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from backend.execution.explaining.explanation import Explained, dot_text, tree_text
from backend.execution.explaining.explanation_document import document_text
from backend.execution.outcome import ResultSet
from backend.execution.pace import aside
from controller.catalog import Catalog
from controller.privileges import check_plan
from controller.sql.plan import OutputColumn
from controller.sql.text.lexer import leading_words
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.values.types import Row, text
from mysql_adapter.information_schema.virtual import outputs_of
from mysql_adapter.sessions.facts import fact
from mysql_adapter.sessions.planned import run_planned
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_TABLE = """
    id ubigint
    select_type 19
    table 64?
    partitions longtext?
    type 10?
    possible_keys 4096?
    key 64?
    key_len 4096?
    ref 1024?
    rows ubigint?
    filtered double?
    Extra 255?
"""
_TREE = (OutputColumn("EXPLAIN", text(None), False),)


async def explain(session: Session, cursor: TokenCursor) -> ResultSet:
    """What follows EXPLAIN (or DESCRIBE), where that is a statement."""
    cursor.accept_any("EXTENDED", "PARTITIONS")
    if cursor.at("FOR", "CONNECTION"):
        raise Unsupported("EXPLAIN FOR CONNECTION")
    analyze = bool(cursor.accept("ANALYZE"))
    format = "TREE" if analyze else "TRADITIONAL"
    if cursor.accept("FORMAT"):
        cursor.expect("=")
        format = cursor.word_or_string().upper()
        if format not in ("TRADITIONAL", "JSON", "TREE", "DOT"):
            raise InvalidStatement(Condition.UNKNOWN_EXPLAIN_FORMAT, format)
        if analyze and format != "TREE":
            raise Unsupported(f"EXPLAIN ANALYZE with {format} format")
    sql = cursor.rest()

    def explained(catalog: Catalog) -> Explained:
        plans, settings = session.environment.plans, session.settings
        plan, values = aside(len(sql), lambda: plans.plan_text(sql, catalog, session.database, settings))
        check_plan(session, plan, sql)
        facts = [fact(session, name) for name in plan.facts]
        return session.environment.database.explain(plan, [*values, *facts])

    found = await session.environment.database.with_reuse(await session.environment.with_catalog(explained))
    if analyze:
        actual = await _measured(session, sql)
        first, _, rest = tree_text(found.step).partition("\n")
        return ResultSet(_TREE, [(f"{first}  {actual}\n{rest}{await _kept(session, found)}",)])
    if format == "JSON":
        return ResultSet(_TREE, [(document_text(found),)])
    if format == "DOT":
        return ResultSet(_TREE, [(dot_text(found.step),)])
    if format == "TREE":
        return ResultSet(_TREE, [(tree_text(found.step) + await _kept(session, found),)])
    rows: list[Row] = [
        (1, "SIMPLE", use.table, None, use.access, use.key, use.key, None, use.reference, None, 100.0, use.extra or None)
        for use in found.tables
    ]
    if not rows:
        rows = [(1, "SIMPLE", *[None] * 9, "No tables used")]
    return ResultSet(outputs_of(_TABLE), rows)


async def _measured(session: Session, sql: str) -> str:
    """The statement is run; steps are not measured one by one."""
    if leading_words(sql) not in (("SELECT",), ("WITH",), ("TABLE",), ("VALUES",)):
        raise Unsupported("EXPLAIN ANALYZE of what is no SELECT")
    started = time.perf_counter()
    outcome = await run_planned(session, sql)
    took_ms = 1000 * (time.perf_counter() - started)
    rows = len(outcome.rows) if isinstance(outcome, ResultSet) else 0
    return f"(actual time={took_ms:.3g}..{took_ms:.3g} rows={rows} loops=1)"


async def _kept(session: Session, found: Explained) -> str:
    """Whether the view is there by now, and what it holds."""
    if found.view is None:
        return ""
    for _, hosted in await session.environment.database.view_status():
        for view in hosted.views:
            if view.name == found.view.name:
                columns = ", ".join(found.columns[column] for column in view.group_columns)
                absent = f"; all keys without rows of {view.groups} groups by {columns}" if columns else ""
                return f"view {view.name.hex()}: {view.keys} keys, {view.rows} rows, {view.size_bytes} bytes{absent}\n"
    return "the view is made when the query comes again\n"
