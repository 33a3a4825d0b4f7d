"""REGEXP_REPLACE, REGEXP_SUBSTR and REGEXP_INSTR; how patterns are matched is in `dataflow.values.regular_expressions`."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from dataflow.errors import Condition, InvalidStatement
from dataflow.functions.registry import Arguments, Domain, function
from dataflow.functions.strings import unbounded
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.conversion import encode
from dataflow.values.regular_expressions import Match, RegularExpression, compiled
from dataflow.values.result_limits import TooLong
from dataflow.values.types import BIGINT, BLOBS


def _compiler(arguments: Arguments) -> Callable[[str, str], RegularExpression]:
    """From a pattern and MySQL's letters for how to match; the collation says whether case matters."""
    collation = merged_collation(arguments[:2], "regexp")
    return lambda pattern, match_type: compiled(pattern, collation, match_type)


def _start(value: str, position: int) -> int:
    if not 1 <= position <= len(value) + 1:
        raise InvalidStatement(Condition.REGULAR_EXPRESSION_INDEX)
    return position - 1


def _occurrence(
    expression: RegularExpression, value: str, position: int, number: int, captures: bool = False
) -> Match | None:
    found = expression.matches(value, _start(value, position), captures)
    return next(islice(found, max(number, 1) - 1, None), None)


def _as_first(arguments: Arguments, apply: Callable[..., str | None]) -> Callable[..., Any]:
    """A text, or bytes where the first argument is bytes."""
    if arguments[0].type.kind not in BLOBS:
        return apply

    def encoded(*values: Any, **options: Any) -> bytes | None:
        found = apply(*values, **options)
        return None if found is None else encode(found)

    return encoded


_SEARCH = (Domain.TEXT, Domain.TEXT, Domain.INTEGER, Domain.INTEGER)


@function("regexp_substr", arguments=(*_SEARCH, Domain.TEXT), optional=3, result=unbounded(0), specialise=True)
def regexp_substr(arguments: Arguments) -> Callable[..., Any]:
    compiled_for = _compiler(arguments)

    def apply(value: str, pattern: str, position: int = 1, occurrence: int = 1, match_type: str = "") -> str | None:
        match = _occurrence(compiled_for(pattern, match_type), value, position, occurrence)
        return match[0] if match else None

    return _as_first(arguments, apply)


@function("regexp_instr", arguments=(*_SEARCH, Domain.INTEGER, Domain.TEXT), optional=4, result=BIGINT, specialise=True)
def regexp_instr(arguments: Arguments) -> Callable[..., int]:
    """With `return_option` 1 the position after the match."""
    compiled_for = _compiler(arguments)

    def apply(
        value: str, pattern: str, position: int = 1, occurrence: int = 1, return_option: int = 0, match_type: str = ""
    ) -> int:
        if return_option not in (0, 1):
            raise InvalidStatement(Condition.WRONG_ARGUMENTS, "regexp_instr: return_option must be 1 or 0.")
        match = _occurrence(compiled_for(pattern, match_type), value, position, occurrence)
        return (match.end() if return_option else match.start()) + 1 if match else 0

    return apply


_LAYOUT = re.compile(r"\\(.)|\$(\d+)|\$\{(\w*)\}|(\$)|([^\\$]+)", re.DOTALL | re.ASCII)


def _replacement(layout: str, expression: RegularExpression) -> list[str | int]:
    """Texts and numbers of groups: $1 and ${name} are groups, \\$ a dollar sign."""
    pieces: list[str | int] = []
    for escaped, digits, name, dollar, plain in _LAYOUT.findall(layout):
        if digits:
            kept = 1
            while kept < len(digits) and int(digits[: kept + 1]) <= expression.groups:
                kept += 1
            if int(digits[:kept]) > expression.groups:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_INDEX)
            pieces += [int(digits[:kept]), digits[kept:]]
        elif dollar or name or plain == escaped == "":
            if name not in expression.names:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_GROUP_NAME)
            pieces.append(expression.names[name])
        else:
            pieces.append(escaped or plain)
    return pieces


def _filled(pieces: list[str | int], match: Match, length_max: int) -> str:
    groups = {piece: match[piece] or "" for piece in pieces if isinstance(piece, int)}
    texts = [piece if isinstance(piece, str) else groups[piece] for piece in pieces]
    if sum(map(len, texts)) > length_max:
        raise TooLong
    return "".join(texts)


@function(
    "regexp_replace",
    arguments=(Domain.TEXT, Domain.TEXT, Domain.TEXT, Domain.INTEGER, Domain.INTEGER, Domain.TEXT),
    optional=3,
    result=unbounded(0),
    specialise=True,
    limited=True,
)
def regexp_replace(arguments: Arguments) -> Callable[..., Any]:
    """`occurrence` 0 replaces all of them."""
    compiled_for = _compiler(arguments)

    def apply(
        value: str, pattern: str, new: str, position: int = 1, occurrence: int = 0, match_type: str = "", *, bytes_max: int
    ) -> str:
        expression = compiled_for(pattern, match_type)
        pieces = _replacement(new, expression)
        captures = any(isinstance(piece, int) for piece in pieces)
        if occurrence > 0:
            match = _occurrence(expression, value, position, occurrence, captures)
            return value[: match.start()] + _filled(pieces, match, bytes_max) + value[match.end() :] if match else value
        parts, last, length = [], 0, 0
        for match in expression.matches(value, _start(value, position), captures):
            filled = _filled(pieces, match, bytes_max)
            length += match.start() - last + len(filled)
            if length > bytes_max:
                raise TooLong
            parts += [value[last : match.start()], filled]
            last = match.end()
        return "".join(parts) + value[last:]

    return _as_first(arguments, apply)
