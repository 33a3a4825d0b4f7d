"""The operands of operators, as far as their syntax matters."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dataflow.expression import Expression, Literal
from dataflow.types import BIGINT_UNSIGNED, NUMBERS, Kind


def with_fitting_literals(operands: list[Expression], nodes: tuple[Any, Any]) -> list[Expression]:
    """TRUE and FALSE beside a JSON value are JSON's; b'1' and x'01' beside a number are numbers."""
    found = list(operands)
    for this, that in ((0, 1), (1, 0)):
        if isinstance(nodes[this], exp.Boolean) and operands[that].type.kind is Kind.JSON:
            found[this] = Literal("true" if nodes[this].this else "false", operands[that].type)
        elif isinstance(nodes[this], exp.BitString | exp.HexString) and operands[that].type.kind in NUMBERS:
            base = 2 if isinstance(nodes[this], exp.BitString) else 16
            found[this] = Literal(int(nodes[this].this or "0", base), BIGINT_UNSIGNED)
    return found


def flattened(node: Any) -> list[Any]:
    """The operands of nested calls of the same operator, left to right, however deep."""
    kind = type(node)
    found: list[Any] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if type(each) is kind:
            pending += (each.expression, each.this)
        else:
            found.append(each)
    return found
