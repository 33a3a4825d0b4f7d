"""Tokens put in the order in which sqlglot expects them, before a statement is parsed.

MySQL takes the options of SELECT in any order, `t.*` for a table of a DELETE, the columns of MATCH without parentheses, and
ODBC's {oj …}, {d '…'}, {t '…'} and {ts '…'}. sqlglot takes `1e0-1e0` for a name. Each token keeps its place in the text, so
an error is still reported where it is written.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot.tokens import Token, TokenType

from dataflow.errors import Condition, InvalidStatement

_MODIFIERS = frozenset(
    {
        "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_NO_CACHE",
        "SQL_CALC_FOUND_ROWS",
    }
)  # fmt: skip
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_DELETE_OPTIONS = frozenset({"IGNORE", "QUICK", "LOW_PRIORITY"})
_TARGETS = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT, TokenType.STAR, TokenType.COMMA})


_SIGNS = frozenset({TokenType.PARAMETER, TokenType.SESSION_PARAMETER})
_LITERALS = {"d": ("DATE", TokenType.DATE), "t": ("TIME", TokenType.TIME), "ts": ("TIMESTAMP", TokenType.TIMESTAMP)}
_NUMBERS = re.compile(r"(\d+(?:\.\d*)?[eE][-+]?\d+)([-+])(\d.*)")


def in_order(given: list[Any]) -> list[Any]:
    given = _plain([part for token in given for part in _numbers(token)])
    if given and given[0].token_type == TokenType.UPDATE:
        given = _with_equals(given)
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


def _with_equals(given: list[Any]) -> list[Any]:
    """SET a := 1 of an UPDATE as SET a = 1; variables that are assigned stay."""
    found: list[Any] = []
    for place, token in enumerate(given):
        is_assigned = token.token_type == TokenType.COLON_EQ and given[place - 2].token_type not in _SIGNS
        found.append(_token(TokenType.EQ, "=", token.start, token.end) if is_assigned else token)
    return found


def _numbers(token: Any) -> list[Any]:
    """1e0-1e0 as two numbers and an operator."""
    if token.token_type not in (TokenType.VAR, TokenType.NUMBER) or (parts := _NUMBERS.fullmatch(token.text)) is None:
        return [token]
    operator = TokenType.DASH if parts[2] == "-" else TokenType.PLUS
    first, sign = token.start + parts.end(1), token.start + parts.end(2)
    rest = _token(TokenType.VAR if _NUMBERS.fullmatch(parts[3]) else TokenType.NUMBER, parts[3], sign, token.end)
    number = _token(TokenType.NUMBER, parts[1], token.start, first - 1)
    return [number, _token(operator, parts[2], first, first), *_numbers(rest)]


def _plain(given: list[Any]) -> list[Any]:
    """Without braces, and with parentheses around the columns of MATCH."""
    found: list[Any] = []
    opened = False
    place = 0
    while place < len(given):
        token, following = given[place], given[place + 1 : place + 2]
        place += 1
        if token.token_type == TokenType.L_BRACE and following:
            text, kind = _LITERALS.get(following[0].text.lower(), ("", None))
            place += 1
            if kind is not None and place + 1 < len(given):
                value, end = given[place], given[place + 1]
                found += [_token(kind, text, token.start, token.end), _token(value.token_type, value.text, value.start, end.end)]
                place += 1
        elif token.token_type == TokenType.R_BRACE:
            continue
        elif opened and token.text.upper() == "AGAINST":
            opened = False
            found += [_token(TokenType.R_PAREN, ")", token.start, token.start), token]
        else:
            found.append(token)
            if token.text.upper() == "MATCH" and following and following[0].token_type in _NAMES:
                opened = True
                found.append(_token(TokenType.L_PAREN, "(", token.end, token.end))
    return found


def _token(kind: TokenType, text: str, start: int, end: int) -> Token:
    return Token(kind, text, start=start, end=end)


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
    while place < len(given) and given[place].token_type not in _NAMES and given[place].text.upper() in _DELETE_OPTIONS:
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
