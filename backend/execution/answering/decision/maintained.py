"""A query that is made of stored tables alone, and changes only when they do: a view of its node, by its keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from backend.execution.answering.decision.decision import Decision
from controller.sql.plan import Query
from dataflow.expressions.expression import Expression
from dataflow.functions import is_deterministic, is_volatile
from dataflow.plan.node import AggregateFunction, Base, Node, Order, bases_of, inputs_of


def maintained(query: Query, one: Query | None) -> Decision | None:
    return None if obstacle(query) else Decision("view", query, one)


def obstacle(query: Query) -> str:
    """Why no view can answer the query, in words; empty if one can."""
    if query.locking:
        return "its rows are locked"
    if not query.tables:
        return "it is a part of another query" if any(bases_of(query.node)) else "it reads no table"
    if any(table.id < 0 for table in query.tables):
        return "it reads computed tables"
    if query.prior or any(base.table < 0 for base in bases_of(query.node)):
        return "parts of it depend on the results of others"
    if not _has_inputs(query.node):
        return "it has rows that come from no table"
    inside = [*expressions_in(query.node), *(item.expression for item in query.order_by)]
    if not all(map(is_deterministic, inside)) or (query.filter is not None and is_volatile(query.filter)):
        return "its result changes while the tables do not"
    return ""


def _has_inputs(node: Node) -> bool:
    """Whether every row comes from some table: the dataflow has no row out of nothing."""
    inputs = inputs_of(node)
    return isinstance(node, Base) or (bool(inputs) and all(_has_inputs(each) for each in inputs))


def expressions_in(value: Any) -> Iterator[Expression]:
    """Every expression in a node, its inputs' included."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from expressions_in(each)
    elif isinstance(value, Node | Order | AggregateFunction):
        for field in fields(value):
            yield from expressions_in(getattr(value, field.name))
