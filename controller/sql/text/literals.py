"""Which literals of a statement may become parameters, decided from its tokens alone.

A literal stays in the text where its value is part of the statement's meaning: positions in
ORDER BY and GROUP BY, lengths in types, digits of ROUND and NOW, aliases, JSON paths, and every
literal of an unaliased item of a SELECT list, because it names its column. Keeping one too many
only costs a template of its own; turning one too many into a parameter would be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.sql.text.lexer import Token, TokenKind

_STAYS_AFTER = frozenset(
    {"AS", "DATE", "TIME", "TIMESTAMP", "COLLATE", "SEPARATOR", "ESCAPE", "->", "->>", "CHARSET", "WAIT", "USING"}
)
_STAYS_BEFORE = frozenset({"PRECEDING", "FOLLOWING"})
_NUMBERS_STAY_IN = frozenset(
    ["CHAR", "NCHAR", "CHARACTER", "VARCHAR", "BINARY", "VARBINARY", "DECIMAL", "DEC", "NUMERIC", "FIXED", "FLOAT", "DOUBLE", "REAL", "DATETIME", "TIME", "TIMESTAMP", "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME", "CURTIME", "SYSDATE", "UTC_TIME", "UTC_TIMESTAMP", "ROUND", "TRUNCATE", "FORMAT", "LAG", "LEAD", "NTILE", "NTH_VALUE", "WEIGHT_STRING"]
)
_CLAUSES = frozenset(
    ["WHERE", "HAVING", "ON", "SET", "VALUES", "VALUE", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "INTO", "FOR", "LOCK", "WINDOW", "JOIN", "GROUP", "ORDER"]
)
_CONDITION_AFTER = frozenset({"WHERE", "AND", "OR", "ON", "HAVING", "NOT", "XOR", "&&", "||"})
_CONDITION_BEFORE = frozenset({"AND", "OR", "XOR", "GROUP", "ORDER", "LIMIT", "HAVING", "FOR", "UNION", ")", "", "&&", "||", ";"})
_COMPARISONS = frozenset({"=", "<", ">", "<>", "!=", "<=", ">=", "<=>"})


_MOMENTS = frozenset(
    ["UNIX_TIMESTAMP", "TIMESTAMP", "TIME", "ADDTIME", "SUBTIME", "TIMEDIFF", "STR_TO_DATE", "SEC_TO_TIME", "MAKETIME", "CONVERT_TZ", "FROM_UNIXTIME", "TIMESTAMPADD", "DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"]
)
"""Functions whose result has as many digits as their literals say: in a SELECT list those show."""


@dataclass(slots=True)
class _Level:
    """The inside of one pair of parentheses: its clause, and the item of a SELECT list in it."""

    numbers_stay: bool
    values_stay: bool = False
    clause: str = ""
    item: list[int] = field(default_factory=list)
    aliased: bool = False


def is_literal(token: Token) -> bool:
    return token.kind is TokenKind.STRING or token.kind is TokenKind.NUMBER


def has_own_collation(literal: str) -> bool:
    """Whether a literal is _latin1'…' or alike: its character set is part of the statement."""
    return literal[0] == "_" and literal[:7].lower() != "_binary"


def parameters_of(tokens: Sequence[Token], literals: Sequence[int]) -> set[int]:
    """Those of `literals` (positions in `tokens`) that may become parameters."""
    # Beside a literal with a character set of its own it matters what is in the others.
    mixed = any(has_own_collation(tokens[position].text) for position in literals)
    wanted = {position for position in literals if not (mixed and tokens[position].kind is TokenKind.STRING)}
    free: set[int] = set()
    names_matter = not tokens or tokens[0].upper not in ("INSERT", "REPLACE")
    # What is selected or ordered by has to be recognised as what is grouped by.
    grouped = any(token.upper in ("GROUP", "DISTINCT") for token in tokens)
    stack = [_Level(False)]

    def end_item(level: _Level) -> None:
        if level.clause == "SELECT" and not level.aliased and names_matter:
            free.difference_update(level.item)
        level.item, level.aliased = [], False

    for position, token in enumerate(tokens):
        level = stack[-1]
        word = token.upper or token.text
        if position in wanted:
            # A LIMIT inside is part of what the query means; the outermost one is applied to its rows.
            inner_limit = len(stack) > 1 and level.clause in ("LIMIT", "OFFSET")
            listed = grouped and any(each.clause in ("SELECT", "BY") for each in stack)
            if not inner_limit and not listed and not _stays(tokens, position, level):
                free.add(position)
                for each in stack:
                    each.item.append(position)
            continue
        if word == "(":
            before = tokens[position - 1].upper if position else ""
            shown = before in _MOMENTS and any(each.clause == "SELECT" for each in stack)
            stays = shown or before == "JSON_TABLE" or level.values_stay
            stack.append(_Level(before in _NUMBERS_STAY_IN, stays))
        elif word == ")":
            end_item(level)
            if len(stack) > 1:
                stack.pop()
        elif word == ",":
            if level.clause == "SELECT":
                end_item(level)
        elif word == "SELECT":
            level.item, level.aliased, level.clause = [], False, "SELECT"
        elif word == "AS":
            level.aliased = True
        elif word == "BY":
            level.clause = "BY"
        elif word in _CLAUSES or (word == "FROM" and level.clause == "SELECT"):
            end_item(level)
            level.clause = word
    for level in stack:
        end_item(level)
    return free


def _stays(tokens: Sequence[Token], position: int, level: _Level) -> bool:
    token = tokens[position]
    before = _word(tokens, position - 1)
    after = _word(tokens, position + 1)
    if before in _STAYS_AFTER or after in _STAYS_BEFORE or after == "COLLATE":
        return True
    if before in ("D", "T", "TS") and _word(tokens, position - 2) == "{":
        return True
    if has_own_collation(token.text):
        return True
    if before == "-" and token.kind is TokenKind.NUMBER and len(token.text) >= 19:
        return True  # -9223372036854775809 is no integer
    if level.values_stay or (token.kind is TokenKind.NUMBER and level.numbers_stay):
        return True
    if level.clause in ("LIMIT", "OFFSET") and not token.text.isdigit():
        return True
    if level.clause == "BY" and (before == "BY" or before == ","):
        return True
    return _is_constant_condition(tokens, position, before, after)


def _is_constant_condition(tokens: Sequence[Token], position: int, before: str, after: str) -> bool:
    """`WHERE 1`, `AND 1 = 1`: written by query builders, and worth folding when planned."""
    if before in _COMPARISONS and position >= 2 and is_literal(tokens[position - 2]):
        return _word(tokens, position - 3) in _CONDITION_AFTER
    if before not in _CONDITION_AFTER or (before == "AND" and _closes_between(tokens, position - 1)):
        return False
    if after in _CONDITION_BEFORE:
        return True
    return after in _COMPARISONS and position + 2 < len(tokens) and is_literal(tokens[position + 2])


def _closes_between(tokens: Sequence[Token], position: int) -> bool:
    """Whether the AND at `position` is that of BETWEEN … AND."""
    depth = 0
    for token in reversed(tokens[:position]):
        if token.text == ")":
            depth += 1
        elif token.text == "(":
            depth -= 1
            if depth < 0:
                return False
        elif depth == 0 and token.upper == "BETWEEN":
            return True
        elif depth == 0 and token.upper in ("AND", "OR", "WHERE", "ON", "HAVING"):
            return False
    return False


def _word(tokens: Sequence[Token], position: int) -> str:
    if not 0 <= position < len(tokens):
        return ""
    return tokens[position].upper or tokens[position].text
