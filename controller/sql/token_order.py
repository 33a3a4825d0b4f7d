"""Tokens put in the order in which sqlglot expects them, before a statement is parsed.

MySQL takes the options of SELECT in any order, and `t.*` for a table of a DELETE. Each token keeps its place in the text, so
an error is still reported where it is written.
"""

from __future__ import annotations

from typing import Any

from sqlglot.tokens import TokenType

from dataflow.errors import Condition, InvalidStatement

_MODIFIERS = frozenset(
    {
        "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_NO_CACHE",
        "SQL_CALC_FOUND_ROWS",
    }
)  # fmt: skip
_TARGETS = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT, TokenType.STAR, TokenType.COMMA})


def in_order(given: list[Any]) -> list[Any]:
    found: list[Any] = []
    place = 0
    while place < len(given):
        token = given[place]
        found.append(token)
        place += 1
        if token.token_type == TokenType.SELECT:
            options, place = _options(given, place)
            found += options
        elif token.token_type == TokenType.DELETE:
            targets, place = _targets(given, place)
            found += targets
    return found


def _options(given: list[Any], place: int) -> tuple[list[Any], int]:
    """DISTINCT, then the modifiers that stand beside it; ALL is what there is without it."""
    distinct: list[Any] = []
    modifiers: list[Any] = []
    every = False
    while place < len(given):
        token = given[place]
        if token.token_type == TokenType.DISTINCT:
            distinct = [token]
        elif token.token_type == TokenType.ALL:
            every = True
        elif token.token_type != TokenType.IDENTIFIER and token.text.upper() in _MODIFIERS:
            modifiers.append(token)
        else:
            break
        place += 1
    if distinct and every:
        raise InvalidStatement(Condition.WRONG_USAGE, "ALL", "DISTINCT")
    return distinct + modifiers, place


def _targets(given: list[Any], place: int) -> tuple[list[Any], int]:
    """The tables of a DELETE without the `.*` that may follow a name."""
    found: list[Any] = []
    if place < len(given) and given[place].token_type == TokenType.FROM:
        found.append(given[place])
        place += 1
    while place < len(given) and given[place].token_type in _TARGETS:
        star = place + 1 < len(given) and given[place + 1].token_type == TokenType.STAR
        if star and given[place].token_type == TokenType.DOT:
            place += 2
            continue
        found.append(given[place])
        place += 1
    return found, place
