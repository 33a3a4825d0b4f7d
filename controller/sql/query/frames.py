"""Frames of window functions: ROWS and RANGE, from where to where.

A bound that is an offset of RANGE is a value of the ORDER BY expression; it is computed from the
current row's, which the bound reads as its only column.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.sql.expressions.constants import unit
from controller.sql.plan import Bound, Frame
from controller.sql.query.expressions import QueryTranslator
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.functions import call
from dataflow.plan.node import Order
from dataflow.values.types import BIGINT, DATES, INTEGERS, NUMBERS, Kind, decimal


def read_frame(spec: Any, order: tuple[Order, ...], translator: QueryTranslator, name: str) -> Frame | None:
    if spec is None:
        return None
    if spec.args.get("exclude"):
        raise Unsupported("EXCLUDE")
    rows = str(spec.args.get("kind") or "").upper() == "ROWS"
    bounds: list[Bound] = []
    ranks: list[int] = []
    for value, side in (
        (spec.args.get("start"), spec.args.get("start_side")),
        (spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side")),
    ):
        towards = -1 if str(side).upper() == "PRECEDING" else 1
        if isinstance(value, str):
            current = value.upper() != "UNBOUNDED"
            bounds.append(0 if current else None)
            ranks.append(0 if current else 2 * towards)
        else:
            found = _rows(value, towards, translator, name) if rows else _offset(value, towards, order, translator, name)
            bounds.append(found)
            ranks.append(towards)
    if ranks[0] == 2:
        raise InvalidStatement(Condition.WINDOW_FRAME_START, name)
    if ranks[1] == -2:
        raise InvalidStatement(Condition.WINDOW_FRAME_END, name)
    if ranks[0] > ranks[1]:
        raise InvalidStatement(Condition.WINDOW_FRAME, name)
    return "rows" if rows else "range", bounds[0], bounds[1]


def _rows(node: Any, towards: int, translator: QueryTranslator, name: str) -> Bound:
    """How many rows after the current one; a parameter, which has to be checked, or zero less that."""
    if isinstance(node, exp.Placeholder):
        count = translator.translate(node)
        return count if towards > 0 else Call("-", (Literal(0, BIGINT), count), BIGINT)
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        raise InvalidStatement(Condition.WINDOW_FRAME, name)
    return int(node.this) * towards


def _offset(
    node: Any, towards: int, order: tuple[Order, ...], translator: QueryTranslator, name: str
) -> Expression:
    if len(order) != 1:
        raise InvalidStatement(Condition.WINDOW_RANGE_ORDER, name)
    kind = order[0].expression.type
    column: Expression = Column(0, kind)
    later = (towards > 0) != order[0].descending
    if kind.kind in DATES or kind.kind is Kind.TIME:
        if not isinstance(node, exp.Interval):
            raise InvalidStatement(Condition.WINDOW_RANGE_TEMPORAL, name)
        amount = translator.translate(node.this)
        return call("date_add" if later else "date_sub", column, amount, unit(node.args["unit"].name))
    if kind.kind not in NUMBERS:
        raise InvalidStatement(Condition.WINDOW_RANGE_ORDER, name)
    if isinstance(node, exp.Interval):
        raise InvalidStatement(Condition.WINDOW_RANGE_NUMERIC, name)
    if isinstance(node, exp.Neg) or (isinstance(node, exp.Literal) and node.is_string):
        raise InvalidStatement(Condition.WINDOW_FRAME, name)
    if kind.kind in INTEGERS:
        column = Call("coalesce", (column,), decimal(20, 0))  # no bound is out of range
    return call("+" if later else "-", column, translator.translate(node))

