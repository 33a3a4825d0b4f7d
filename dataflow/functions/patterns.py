"""LIKE and REGEXP.

LIKE compares character by character under the collation. Both texts are folded, each character
to one that stands for all it equals, and the pattern becomes the cheapest test that decides it.
For REGEXP the collation decides only whether case matters; see `dataflow.values.regular_expressions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Literal
from dataflow.functions.registry import Arguments, Fragment, special
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.collation.keys import character_key
from dataflow.values.conversion import Domain
from dataflow.values.regular_expressions import compiled
from dataflow.values.short_cache import kept_if_short
from dataflow.values.types import BOOLEAN, SqlType
from dataflow.values.types import text as text_type

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Match = Callable[[str], bool]


class _Folding(dict[int, str]):
    """For `str.translate`: each character to the first one found equal to it."""

    def __init__(self, key: Callable[[str], bytes]) -> None:
        super().__init__()
        self._key = key
        self._chosen: dict[bytes, str] = {}
        for point in range(128):
            character = chr(point).lower()
            self._chosen.setdefault(key(character), character)
            self[point] = character

    def __missing__(self, point: int) -> str:
        character = chr(point)
        found = self[point] = self._chosen.setdefault(self._key(character), character)
        return found


@cache
def folding(collation: str) -> Callable[[str], str] | None:
    """Maps texts so that equal characters become the same; None if all are different."""
    if collation == "binary" or collation.endswith(("_bin", "_as_cs")):
        return None
    table = _Folding(character_key(collation))

    def fold(text: str) -> str:
        return text.lower() if text.isascii() else text.translate(table)

    return fold


def like_parts(pattern: str, escape: str) -> list[str | None]:
    """Literal texts, "%" as None, and "_" as the empty text."""
    parts: list[str | None] = []
    literal: list[str] = []

    def end_literal() -> None:
        if literal:
            parts.append("".join(literal))
            literal.clear()

    at = 0
    for sign in re.finditer(f"[%_{re.escape(escape)}]", pattern):
        if sign.start() < at:
            continue  # it was escaped
        if sign.start() > at:
            literal.append(pattern[at : sign.start()])
        at = sign.end()
        if sign[0] == escape and at < len(pattern):
            literal.append(pattern[at])
            at += 1
        elif sign[0] == "_":
            end_literal()
            parts.append("")
        elif sign[0] == "%":
            end_literal()
            if not parts or parts[-1] is not None:
                parts.append(None)
        else:
            literal.append(sign[0])
    if at < len(pattern):
        literal.append(pattern[at:])
    end_literal()
    return parts


@kept_if_short(4096)
def like_matcher(pattern: str, escape: str, collation: str) -> Match:
    """The test that `text LIKE pattern ESCAPE escape` is."""
    fold = folding(collation)
    parts = like_parts(pattern, escape)
    if fold is None:
        return _like_test(parts)
    test = _like_test([fold(part) if part else part for part in parts])
    return lambda text: test(fold(text))


def _like_test(parts: list[str | None]) -> Match:
    match parts:
        case []:
            return lambda text: not text
        case [None]:
            return lambda text: True
        case [str(only)] if only:
            return lambda text: text == only
        case [str(start), None] if start:
            return lambda text: text.startswith(start)
        case [None, str(end)] if end:
            return lambda text: text.endswith(end)
        case [None, str(inner), None] if inner:
            return lambda text: inner in text
    return _segments_test(parts)


def _segments_test(parts: list[str | None]) -> Match:
    """What stands between two "%" has a fixed length, so it is enough to find each where it comes first after the one before.

    The time is at most that of comparing each segment with the text at every position.
    """
    segments: list[list[str]] = [[]]
    for part in parts:
        if part is None:
            segments.append([])
        else:
            segments[-1].append(part)
    patterns = [
        re.compile("".join(re.escape(part) if part else "." for part in segment), re.DOTALL) for segment in segments
    ]
    lengths = [sum(len(part) or 1 for part in segment) for segment in segments]
    if len(patterns) == 1:
        whole = patterns[0].fullmatch
        return lambda text: whole(text) is not None
    first, last = patterns[0].match, patterns[-1].match
    inner = [pattern.search for pattern, segment in zip(patterns[1:-1], segments[1:-1]) if segment]

    def test(text: str) -> bool:
        end = len(text) - lengths[-1]
        if lengths[0] > end or first(text) is None or last(text, end) is None:
            return False
        at = lengths[0]
        for search in inner:
            found = search(text, at, end)
            if found is None:
                return False
            at = found.end()
        return True

    return test


def _like_type(arguments: Arguments) -> SqlType:
    merged_collation(arguments[:2], "like")
    escape = arguments[2].value if len(arguments) > 2 and isinstance(arguments[2], Literal) else None
    if isinstance(escape, str) and len(escape) > 1:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "ESCAPE")
    return BOOLEAN


def _characters(value: bytes) -> str:
    """One character for each byte."""
    return value.decode("latin-1")


def _like(emitter: Emitter, call: Call, negated: bool) -> Fragment:
    collation = merged_collation(call.arguments[:2], "like")
    domain, key = (Domain.BYTES, _characters) if collation == "binary" else (Domain.TEXT, None)
    text = emitter.convert(call.arguments[0], domain, key)
    outcomes = "0 if {} else 1" if negated else "1 if {} else 0"
    escape = call.arguments[2] if len(call.arguments) > 2 else Literal("\\", text_type(1))
    pattern = call.arguments[1]
    if isinstance(pattern, Literal) and isinstance(pattern.value, str) and isinstance(escape, Literal) and key is None:
        matcher = emitter.constant(like_matcher(pattern.value, str(escape.value or ""), collation))
        return emitter.propagate([text], lambda value: outcomes.format(f"{matcher}({value})"))
    name = emitter.constant(like_matcher)
    sides = [text, emitter.convert(pattern, domain, key), emitter.convert(escape, Domain.TEXT)]
    return emitter.propagate(
        sides, lambda value, like, sign: outcomes.format(f"{name}({like}, {sign}, {collation!r})({value})")
    )


@special("like", least=2, most=3, result=_like_type)
def like(emitter: Emitter, call: Call) -> Fragment:
    return _like(emitter, call, negated=False)


@special("not like", least=2, most=3, result=_like_type)
def not_like(emitter: Emitter, call: Call) -> Fragment:
    return _like(emitter, call, negated=True)


def _regexp(emitter: Emitter, call: Call, negated: bool) -> Fragment:
    collation = merged_collation(call.arguments[:2], "regexp")
    name = emitter.constant(compiled)
    sides = [emitter.convert(argument, Domain.TEXT) for argument in call.arguments]
    outcome = "+(not {})" if negated else "+{}"

    def body(value: str, pattern: str, match_type: str = "''") -> str:
        return outcome.format(f"{name}({pattern}, {collation!r}, {match_type}).is_in({value})")

    return emitter.propagate(sides, body)


@special("regexp", "rlike", "regexp_like", least=2, most=3, result=BOOLEAN)
def regexp(emitter: Emitter, call: Call) -> Fragment:
    return _regexp(emitter, call, negated=False)


@special("not regexp", "not rlike", least=2, most=2, result=BOOLEAN)
def not_regexp(emitter: Emitter, call: Call) -> Fragment:
    return _regexp(emitter, call, negated=True)
