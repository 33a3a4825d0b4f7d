"""Which operator or function each node class of sqlglot is."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

BINARY: dict[Any, str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.And: "and",
    exp.Or: "or",
    exp.Xor: "xor",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.Like: "like",
    exp.RegexpLike: "regexp",
}
COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
UNARY: dict[Any, str] = {exp.Not: "not", exp.Neg: "negate", exp.BitwiseNot: "~"}
OF_NUMBERS = frozenset({"abs", "ceil", "ceiling", "floor", "round", "truncate", "mod", "pow", "power", "sqrt", "sign", "bit_count"})
"""Functions whose arguments are numbers, also where they were written as 0xFF."""
NO_PARENTHESES: dict[Any, str] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.CurrentUser: "current_user",
    exp.CurrentRole: "current_role",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
}
