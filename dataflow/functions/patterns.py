"""LIKE and REGEXP.

LIKE compares character by character under the collation. Both texts are folded, each character
to one that stands for all it equals, and the pattern becomes the cheapest test that decides it.
REGEXP uses Python's engine; the collation decides only whether case matters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from dataflow.collation.coercion import merged_collation
from dataflow.collation.keys import character_key, is_case_sensitive
from dataflow.conversion import Domain
from dataflow.errors import Condition, InvalidStatement
from dataflow.expression import Call, Literal
from dataflow.functions.registry import Arguments, Fragment, special
from dataflow.types import BOOLEAN, SqlType
from dataflow.types import text as text_type

if TYPE_CHECKING:
    from dataflow.compile import Emitter

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
    literal = ""
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape and escape and at + 1 < len(pattern):
            at += 1
            literal += pattern[at]
        elif character in "%_":
            if literal:
                parts.append(literal)
                literal = ""
            if character == "_":
                parts.append("")
            elif not parts or parts[-1] is not None:
                parts.append(None)
        else:
            literal += character
        at += 1
    if literal:
        parts.append(literal)
    return parts


@lru_cache(maxsize=4096)
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
    source = "".join(".*?" if part is None else re.escape(part) if part else "." for part in parts)
    found = re.compile(source, re.DOTALL).fullmatch
    return lambda text: found(text) is not None


def like_prefix(pattern: str, escape: str = "\\") -> str:
    """The text every match starts with (up to collation); for index ranges."""
    parts = like_parts(pattern, escape)
    return parts[0] if parts and parts[0] else ""


def _like_type(arguments: Arguments) -> SqlType:
    merged_collation(arguments[:2], "like")
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


_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~", "space": "\\s",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f", "word": "\\w",
}  # fmt: skip
_CLASS = re.compile(r"\[:(\w+):\]")


@lru_cache(maxsize=1024)
def compile_regex(pattern: str, collation: str, flags: str = "") -> re.Pattern[str]:
    """`flags` are REGEXP_LIKE's match type: c, i, m, n, u."""
    options = re.RegexFlag(0) if is_case_sensitive(collation) else re.IGNORECASE
    for flag in flags:
        match flag:
            case "c":
                options &= ~re.IGNORECASE
            case "i":
                options |= re.IGNORECASE
            case "m":
                options |= re.MULTILINE
            case "n":
                options |= re.DOTALL
            case "u":
                pass
            case _:
                raise InvalidStatement(Condition.WRONG_ARGUMENTS, "regexp_like")
    source = pattern.replace("[[:<:]]", r"\b(?=\w)").replace("[[:>:]]", r"\b(?<=\w)")
    source = _CLASS.sub(lambda found: _CLASSES.get(found[1], found[0]), source)
    try:
        return re.compile(source, options)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidStatement(Condition.REGEXP_ERROR, error) from None


def _regexp(emitter: Emitter, call: Call, negated: bool) -> Fragment:
    collation = merged_collation(call.arguments[:2], "regexp")
    name = emitter.constant(compile_regex)
    sides = [emitter.convert(argument, Domain.TEXT) for argument in call.arguments]
    outcome = "+({} is None)" if negated else "+({} is not None)"

    def body(value: str, pattern: str, flags: str = "''") -> str:
        return outcome.format(f"{name}({pattern}, {collation!r}, {flags}).search({value})")

    return emitter.propagate(sides, body)


@special("regexp", "rlike", "regexp_like", least=2, most=3, result=BOOLEAN)
def regexp(emitter: Emitter, call: Call) -> Fragment:
    return _regexp(emitter, call, negated=False)


@special("not regexp", "not rlike", least=2, most=2, result=BOOLEAN)
def not_regexp(emitter: Emitter, call: Call) -> Fragment:
    return _regexp(emitter, call, negated=True)
