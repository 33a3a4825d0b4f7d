"""REGEXP_REPLACE, REGEXP_SUBSTR and REGEXP_INSTR; how patterns are compiled is in `patterns`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from dataflow.collation.coercion import merged_collation
from dataflow.errors import Condition, InvalidStatement
from dataflow.functions.patterns import compile_regex
from dataflow.functions.registry import Arguments, Domain, function
from dataflow.functions.strings import unbounded
from dataflow.types import BIGINT


def _compiler(arguments: Arguments) -> Callable[[str, str], re.Pattern[str]]:
    """From a pattern and MySQL's letters for how to match; the collation says whether case matters."""
    collation = merged_collation(arguments[:2], "regexp")

    def compiled(pattern: str, match_type: str) -> re.Pattern[str]:
        if not pattern:
            raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION)
        return compile_regex(pattern, collation, match_type)

    return compiled


def _start(value: str, position: int) -> int:
    if not 1 <= position <= len(value) + 1:
        raise InvalidStatement(Condition.REGULAR_EXPRESSION_INDEX)
    return position - 1


def _occurrence(pattern: re.Pattern[str], value: str, position: int, number: int) -> re.Match[str] | None:
    start = _start(value, position)
    for count, match in enumerate(pattern.finditer(value, start), 1):
        if count >= number:
            return match
    return None


_SEARCH = (Domain.TEXT, Domain.TEXT, Domain.INTEGER, Domain.INTEGER)


@function("regexp_substr", arguments=(*_SEARCH, Domain.TEXT), optional=3, result=unbounded(0), specialise=True)
def regexp_substr(arguments: Arguments) -> Callable[..., str | None]:
    compiled = _compiler(arguments)

    def apply(value: str, pattern: str, position: int = 1, occurrence: int = 1, match_type: str = "") -> str | None:
        match = _occurrence(compiled(pattern, match_type), value, position, occurrence)
        return match[0] if match else None

    return apply


@function("regexp_instr", arguments=(*_SEARCH, Domain.INTEGER, Domain.TEXT), optional=4, result=BIGINT, specialise=True)
def regexp_instr(arguments: Arguments) -> Callable[..., int]:
    """With `return_option` 1 the position after the match."""
    compiled = _compiler(arguments)

    def apply(
        value: str, pattern: str, position: int = 1, occurrence: int = 1, return_option: int = 0, match_type: str = ""
    ) -> int:
        if return_option not in (0, 1):
            raise InvalidStatement(Condition.WRONG_ARGUMENTS, "regexp_instr: return_option must be 1 or 0.")
        match = _occurrence(compiled(pattern, match_type), value, position, occurrence)
        return match.span()[return_option] + 1 if match else 0

    return apply


@lru_cache(maxsize=256)
def _replacement(layout: str, groups: int) -> Callable[[re.Match[str]], str]:
    """$1 is a group, \\$ a dollar sign."""
    pieces: list[str | int] = []
    for escaped, digits, name, plain in re.findall(r"\\(.)|\$(\d+)|\$\{(\w+)\}|([^\\$]+)", layout, re.DOTALL):
        if digits:
            number = int(digits[0])
            kept = 1
            while kept < len(digits) and int(digits[: kept + 1]) <= groups:
                kept += 1
                number = int(digits[:kept])
            if number > groups:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_INDEX)
            pieces += [number, digits[kept:]]
        elif name:
            raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION)
        else:
            pieces.append(escaped or plain)
    return lambda match: "".join([piece if isinstance(piece, str) else match[piece] or "" for piece in pieces])


@function(
    "regexp_replace",
    arguments=(Domain.TEXT, Domain.TEXT, Domain.TEXT, Domain.INTEGER, Domain.INTEGER, Domain.TEXT),
    optional=3,
    result=unbounded(0),
    specialise=True,
)
def regexp_replace(arguments: Arguments) -> Callable[..., str]:
    """`occurrence` 0 replaces all of them."""
    compiled = _compiler(arguments)

    def apply(
        value: str, pattern: str, new: str, position: int = 1, occurrence: int = 0, match_type: str = ""
    ) -> str:
        expression = compiled(pattern, match_type)
        replacement = _replacement(new, expression.groups)
        start = _start(value, position)
        if occurrence > 0:
            match = _occurrence(expression, value, position, occurrence)
            return value[: match.start()] + replacement(match) + value[match.end() :] if match else value
        pieces, last = [], 0
        for match in expression.finditer(value, start):
            pieces += [value[last : match.start()], replacement(match)]
            last = match.end()
        return "".join(pieces) + value[last:]

    return apply
