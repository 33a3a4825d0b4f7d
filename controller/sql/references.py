"""The privileges that a statement needs on tables, by the names it mentions.

Only names count, not what they stand for: what a view reads is not mentioned by who reads the
view. Where a name may stand for a common table expression or for a table, `uncertain` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from controller.sql.planner import parse_statement
from controller.sql.settings import Settings
from controller.sql.text.template import canonical_text
from dataflow.errors import Condition, InvalidStatement


@dataclass(frozen=True, slots=True)
class Need:
    """A privilege on a table, or on a database if `table` is empty.

    Who has it on `columns` of the table needs no more; if these are None, on the whole table. With `*` among them it is the
    table that is denied.
    """

    privilege: str
    database: str
    table: str = ""
    uncertain: bool = False
    columns: frozenset[str] | None = None


def needs_of(sql: str, database: str | None, settings: Settings) -> tuple[Need, ...]:
    """What a SELECT, INSERT, REPLACE, UPDATE or DELETE needs."""
    tree = parse_statement(canonical_text(sql, settings), settings.sql_mode)
    expressions = {each.alias for each in tree.find_all(exp.CTE)}
    tables = list(tree.find_all(exp.Table))
    targets = _targets(tree, tables)
    found: dict[Need, None] = {}
    for table in tables:
        if not isinstance(table.this, exp.Identifier):
            continue
        owner = table.db or database
        if not owner:
            if table.name in expressions:
                continue
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        uncertain = not table.db and table.name in expressions
        for privilege in targets.get(id(table), ("SELECT",)):
            found[Need(privilege, owner, table.name, uncertain)] = None
    return tuple(found)


def _targets(tree: Any, tables: list[Any]) -> dict[int, tuple[str, ...]]:
    """The tables that are written, by the id of their tree, with what that needs."""
    match tree:
        case exp.Insert():
            target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
            needed = ["INSERT"]
            if tree.args.get("overwrite"):
                needed.append("DELETE")
            if tree.args.get("conflict") is not None:
                needed.append("UPDATE")
            return {id(target): tuple(needed)}
        case exp.Update():
            reads = tree.args.get("where") is not None or any(
                isinstance(each, exp.EQ) and each.expression.find(exp.Column) is not None for each in tree.expressions
            )
            joined = [each for each in tables if _is_joined(each, tree)]
            update = ("UPDATE", "SELECT") if reads or len(joined) > 1 else ("UPDATE",)
            assigned = {each.this.table.lower() for each in tree.expressions if isinstance(each, exp.EQ)}
            known = {each.alias_or_name.lower() for each in joined}
            changed = assigned if assigned <= known else known  # a column without a table may be of any
            return {id(each): update if each.alias_or_name.lower() in changed else ("SELECT",) for each in joined}
        case exp.Delete():
            named = tree.args.get("tables") or ([tree.this] if tree.args.get("using") else [])
            if named:
                return _deleted(named, [each for each in tables if _is_joined(each, tree)])
            reads = tree.args.get("where") is not None
            return {id(tree.this): ("DELETE", "SELECT") if reads else ("DELETE",)}
    return {}


def _deleted(named: list[Any], joined: list[Any]) -> dict[int, tuple[str, ...]]:
    """DELETE over several tables: `named` are names or aliases of those that lose rows, no tables themselves."""
    found: dict[int, tuple[str, ...]] = {id(each): () for each in named}
    names = {each.name.lower() for each in named}
    known = {table.alias_or_name.lower() for table in joined if id(table) not in found}
    if not names <= known:
        names = known  # not understood: all of them
    for table in joined:
        if id(table) not in found:
            found[id(table)] = ("DELETE", "SELECT") if table.alias_or_name.lower() in names else ("SELECT",)
    return found


def _is_joined(table: Any, tree: Any) -> bool:
    """Whether a table stands in the statement's own list, not in a subquery."""
    parent = table.parent
    while parent is not tree:
        if isinstance(parent, exp.Query):
            return False
        parent = parent.parent
    return True
