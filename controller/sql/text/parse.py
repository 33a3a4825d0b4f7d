"""SELECT, INSERT, REPLACE, UPDATE and DELETE as sqlglot trees, read the way MySQL reads them (see `grammar`).

Definition statements have a parser of their own, see `definition`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from controller.sql.text.depth import deeply
from controller.sql.text.grammar import MillraceDialect
from controller.sql.text.lexer import TokenKind, tokens
from controller.sql.text.long_strings import syntax_error
from controller.sql.text.precedence import EDITS
from dataflow.errors import Condition, InvalidStatement

__all__ = ["GRAMMAR_MODES", "is_comma", "parameter_count", "parse", "parse_expression", "parse_view", "several", "syntax_error", "without_modes"]

_LONG_LIST = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|\bIN\s*\(\s*(\?(?>(?:\s*,\s*\?){31,}))\s*\)""",
    re.IGNORECASE | re.DOTALL,
)


def several(count: int) -> str:
    """One mark for so many parameters side by side."""
    return f"?/*\x01{count}*/"


def parameter_count(placeholder: Any) -> int:
    """How many parameters the placeholder stands for."""
    return int(placeholder.meta.get("count", 1)) if placeholder._meta else 1


def is_comma(join: Any) -> bool:
    """Whether the join was written as a comma, which binds less tightly than all others."""
    return bool(join.meta.get("comma"))


def _with_short_lists(sql: str) -> str:
    """`sql` with one `?` that knows their number for those of a long IN list: parsing each would take long."""

    def short(match: re.Match[str]) -> str:
        return match[0] if match[1] is None else f"IN ({several(match[1].count('?'))})"

    return sql if sql.count("?") < 64 else _LONG_LIST.sub(short, sql)


GRAMMAR_MODES = frozenset({"PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE"})
"""The modes of sql_mode that a tree depends on."""
VIEWS_KEPT_MAX = 500
_SET_OPERATION_OR_LIMIT = re.compile(r"\b(?:UNION|EXCEPT|INTERSECT|LIMIT)\b", re.IGNORECASE)


@lru_cache(maxsize=4)
def _dialect(modes: frozenset[str]) -> MillraceDialect:
    return MillraceDialect(modes)


def _parsed(sql: str, dialect: MillraceDialect) -> Any:
    short = _with_short_lists(sql)
    try:
        return dialect.parse(short)
    except ParseError:
        if short == sql:
            raise
        return dialect.parse(sql)  # for the place of the error


def _check_order(sql: str) -> None:
    """A query that UNION follows has ORDER BY, LIMIT and FOR UPDATE in parentheses only, and ORDER BY comes before LIMIT."""
    clauses = [""]
    before = ""
    for token in tokens(sql):
        word = token.upper if token.kind is TokenKind.WORD and before != "." else token.text
        if word in ("UPDATE", "SHARE") and before.upper() == "FOR":
            clauses[-1] = "FOR"
        before = token.text
        if word == "(":
            clauses.append("")
        elif word == ")":
            clauses = clauses[:-1] or [""]
        elif word == "SELECT":
            clauses[-1] = ""
        elif word in ("UNION", "EXCEPT", "INTERSECT") or (word == "ORDER" and clauses[-1] == "LIMIT"):
            if clauses[-1]:
                raise syntax_error(sql, token.start)
        elif word in ("ORDER", "LIMIT"):
            clauses[-1] = word


def parse(sql: str, modes: frozenset[str] = frozenset()) -> Any:
    """The tree of one statement under a sql_mode; error 1064 where MySQL has it, or close to it."""
    dialect = _dialect(modes & GRAMMAR_MODES)
    if "\0" in sql:
        sql = sql.removesuffix("\0")  # some clients send the end of their string
        zero = next((token.start for token in tokens(sql) if token.text == "\0"), None)
        if zero is not None:
            raise syntax_error(sql[:zero], zero)
    if _SET_OPERATION_OR_LIMIT.search(sql):
        _check_order(sql)
    try:
        found = deeply(lambda: _parsed(sql, dialect))
    except ParseError as error:
        raise syntax_error(sql, error.errors[0].get("offset", 0)) from None
    except TokenError:
        open_quotes = (token.start for token in tokens(sql) if token.text in ("'", '"', "`"))
        raise syntax_error(sql, next(open_quotes, 0)) from None
    if len(found) > 1:
        raise syntax_error(sql, next(token.end for token in tokens(sql) if token.text == ";"))
    if not found or found[0] is None:
        raise InvalidStatement(Condition.EMPTY_QUERY)
    if isinstance(found[0], exp.Command):
        raise syntax_error(sql, 0)
    return found[0]


def without_modes(sql: str, modes: frozenset[str]) -> str:
    """A query as it is written for a reader whose sql_mode has none of the modes of the grammar: CONCAT for `||`, `!` for NOT."""
    if not modes & GRAMMAR_MODES:
        return sql
    edits = (edit for node in parse(sql, modes).walk() for edit in node.meta.get(EDITS, ()))
    for start, end, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


@lru_cache(maxsize=VIEWS_KEPT_MAX)
def _parsed_view(select: str) -> Any:
    return parse(select)


def parse_view(select: str) -> Any:
    """As `parse`, for the SELECT of a named view: each query over it asks for its tree again."""
    return _parsed_view(select).copy()


def parse_expression(sql: str) -> Any:
    """The tree of an expression on its own (DEFAULT, CHECK, GENERATED ALWAYS AS)."""
    select = parse("SELECT " + sql)
    if not isinstance(select, exp.Select) or len(select.expressions) != 1 or len([v for v in select.args.values() if v]) != 1:
        raise syntax_error(sql, 0)
    return select.expressions[0]
