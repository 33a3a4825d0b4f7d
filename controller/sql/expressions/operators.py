"""Which operator or function each node class of sqlglot is."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from controller.sql.text.parse import syntax_error
from dataflow.errors import Condition, InvalidStatement

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
NO_PARENTHESES: dict[Any, str] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.CurrentUser: "current_user",
    exp.CurrentRole: "current_role",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
}
UNIT_FIRST = frozenset({"timestampadd", "timestampdiff", "get_format"})
DATE_ARITHMETIC = {"date_add": "date_add", "adddate": "date_add", "date_sub": "date_sub", "subdate": "date_sub"}
CHOICES = frozenset({"coalesce", "ifnull", "if", "greatest", "least"})
"""Functions that give one of their arguments."""
OF_DATES = frozenset(
    """date day dayofmonth dayofweek dayofyear dayname month monthname quarter year week weekday weekofyear yearweek last_day
    to_days to_seconds unix_timestamp timestamp date_format convert_tz datediff""".split()  # noqa: SIM905
)
"""Functions of a date, for which a TIME is that time of the current day."""
OF_STRINGS = dict.fromkeys(
    """coalesce ifnull greatest least nullif concat concat_ws replace insert lpad rpad find_in_set locate instr position
    strcmp substring_index""".split(), 0  # noqa: SIM905
) | {"if": 1, "elt": 1, "make_set": 1, "export_set": 1}  # fmt: skip
"""Functions that join or compare strings, and which of their arguments is the first of those."""
_WINDOW_FUNCTIONS = frozenset(
    "row_number rank dense_rank cume_dist percent_rank ntile lag lead first_value last_value nth_value".split()  # noqa: SIM905
)
REFUSED = frozenset({"load_file"})
"""Functions of MySQL that are not there."""
AGGREGATES = frozenset(
    """count sum avg min max group_concat bit_and bit_or bit_xor std stddev stddev_pop stddev_samp variance var_pop
    var_samp json_arrayagg json_objectagg any_value""".split()  # noqa: SIM905
)


def is_condition(node: Any) -> bool:
    """Whether a clause of its statement keeps a row or not by `node`, itself or in AND and OR."""
    parent = node.parent
    while isinstance(parent, exp.And | exp.Or | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where | exp.Join)


def calls_aggregate(node: Any) -> bool:
    """Whether the expression calls an aggregate itself, not in a query inside it."""
    calls = node.find_all(exp.Anonymous, exp.GroupConcat)
    return any(
        (isinstance(each, exp.GroupConcat) or str(each.this).lower() in AGGREGATES) and each.find_ancestor(exp.Query) is node.find_ancestor(exp.Query)
        for each in calls
    )


def unknown_function(name: str) -> InvalidStatement:
    """What to say of a call that means nothing here. Functions of windows are words of the grammar, which wants OVER behind them."""
    if name.lower() in _WINDOW_FUNCTIONS:
        return syntax_error(name, len(name))
    return InvalidStatement(Condition.UNKNOWN_FUNCTION, name)
