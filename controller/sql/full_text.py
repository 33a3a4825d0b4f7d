"""MATCH (columns) AGAINST (words …): which function it is, and whether there is an index for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controller.sql.scope import Scope
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expression import Column, Expression
from dataflow.functions import call


def match_against(node: Any, translate: Callable[[Any], Expression], scope: Scope) -> Expression:
    modifier = str(node.args.get("modifier") or "").upper()
    if "EXPANSION" in modifier:
        raise Unsupported("WITH QUERY EXPANSION")
    columns = [translate(each) for each in node.expressions]
    if not all(isinstance(each, Column) for each in columns):
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "MATCH")
    _check_index(columns, scope)
    function = "match_boolean" if "BOOLEAN" in modifier else "match_natural"
    return call(function, translate(node.this), *columns)


def _check_index(columns: list[Expression], scope: Scope) -> None:
    """1191 unless one index has exactly these columns; not where they come from a derived table."""
    found = [scope.column_at(each.index) for each in columns if isinstance(each, Column)]
    known = [each for each in found if each is not None]
    if not scope.sources or len(known) < len(columns):
        return
    table = known[0][0].table
    wanted = {column.id for _, column in known}
    for index in table.indexes:
        if index.kind == "FULLTEXT" and {part.column_id for part in index.parts} == wanted:
            return
    raise InvalidStatement(Condition.NO_FULL_TEXT_INDEX)
