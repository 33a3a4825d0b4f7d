"""MATCH … AGAINST as calls of `dataflow.functions.full_text`.

Where only whether a row matches counts, as a condition, that is one call. Elsewhere it is the
score, which reads beside the row a subquery with the words of all rows.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table


def with_matches(tree: Any, catalog: Catalog, database: str | None) -> Any:
    """`tree`, or a copy of it without MATCH … AGAINST."""
    if tree.find(exp.MatchAgainst) is None:
        return tree
    tree = tree.copy()
    for node in list(tree.find_all(exp.MatchAgainst)):
        made = _call(node, catalog, database)
        made.meta.update(node.meta)  # it is called by its text
        node.replace(made)
    return tree


def _call(node: Any, catalog: Catalog, database: str | None) -> Any:
    modifier = str(node.args.get("modifier") or "")
    source, table = _source(node, catalog, database)
    _check_index(table, {each.name.lower() for each in node.expressions})
    mode = exp.Literal.string("boolean" if "BOOLEAN" in modifier else "natural")
    given = [mode, _expanded(node, source) if "EXPANSION" in modifier else node.this]
    if _is_condition(node):
        return _anonymous("fulltext matches", *given, *node.expressions)
    words = _anonymous("fulltext words", *(each.copy() for each in given), *_columns(node))
    counted = _anonymous("JSON_ARRAY", _anonymous("COUNT", exp.Star()), _anonymous("JSON_ARRAYAGG", words))
    return _anonymous("fulltext score", *given, _of_all(source, counted), *node.expressions)


def _expanded(node: Any, source: Any) -> Any:
    """The words asked for and those of all rows that have one of them."""
    matches = _anonymous("fulltext matches", exp.Literal.string("natural"), node.this.copy(), *_columns(node))
    rows = _anonymous("JSON_ARRAYAGG", _anonymous("CONCAT_WS", exp.Literal.string(" "), *_columns(node)))
    return _anonymous("fulltext expanded", node.this, _of_all(source, rows, matches))


def _columns(node: Any) -> list[Any]:
    return [exp.column(each.this.copy()) for each in node.expressions]


def _of_all(source: Any, value: Any, condition: Any = None) -> Any:
    """The value of an aggregate over the table itself, of the rows for which the condition holds."""
    select = exp.Select(expressions=[value], from_=exp.From(this=exp.Table(this=source.this.copy(), db=source.args.get("db"))))
    if condition is not None:
        select.set("where", exp.Where(this=condition))
    return exp.Subquery(this=select)


def _anonymous(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _is_condition(node: Any) -> bool:
    """Whether nothing but the truth of the match counts."""
    inner, parent = node, node.parent
    while isinstance(parent, exp.And | exp.Or | exp.Not | exp.Paren):
        inner, parent = parent, parent.parent
    return isinstance(parent, exp.Where) or (isinstance(parent, exp.Join) and parent.args.get("on") is inner)


def _source(node: Any, catalog: Catalog, database: str | None) -> tuple[Any, Table]:
    """The table of the columns: one that the SELECT names."""
    select = node.find_ancestor(exp.Select, exp.Update, exp.Delete)
    qualifier = node.expressions[0].table.lower()
    first = node.expressions[0].name.lower()
    for source in [] if select is None else select.find_all(exp.Table):
        if source.find_ancestor(exp.Select, exp.Update, exp.Delete) is not select:
            continue
        if (source.text("db") or database or "", source.name) in catalog.views:
            continue
        table = catalog.table(source.text("db") or database, source.name)
        if source.alias_or_name.lower() == qualifier if qualifier else first in {each.name.lower() for each in table.columns}:
            return source, table
    raise InvalidStatement(Condition.NO_FULL_TEXT_INDEX)


def _check_index(table: Table, columns: set[str]) -> None:
    names = {column.id: column.name.lower() for column in table.columns}
    for index in table.indexes:
        if index.kind == "FULLTEXT" and {names[part.column_id] for part in index.parts} == columns:
            return
    raise InvalidStatement(Condition.NO_FULL_TEXT_INDEX)
