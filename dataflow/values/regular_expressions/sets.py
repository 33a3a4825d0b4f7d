"""Sets in brackets: `[a-z]`, `[[:alpha:]_]`, `[^\\d\\s]`, and ICU's `[[a-z]--[aeiou]]` and `[\\w&&[^_]]`.

Sets that contain other sets are for `regex` only, in whose newer syntax they mean what they mean to ICU.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.errors import Condition, InvalidStatement
from dataflow.values.regular_expressions.characters import POSIX, literal, ranges
from dataflow.values.regular_expressions.reader import PatternReader

_DEPTH_MAX = 50


@dataclass(frozen=True, slots=True)
class Set:
    """What stands between the brackets, for RE2 (None if it cannot) and for `regex`."""

    linear: str | None
    backtracking: str
    negated: bool


def read_set(reader: PatternReader, depth: int = 0) -> Set:
    """The set whose opening bracket was read last."""
    if depth > _DEPTH_MAX:
        raise InvalidStatement(Condition.REGULAR_EXPRESSION_SIZE)
    start = reader.at
    if reader.takes(":"):
        named = _posix(reader)
        if named is not None:
            return named
        reader.at = start
    negated = reader.takes("^")
    linear: list[str] | None = []
    backtracking: list[str] = []
    first = True
    while first or not reader.takes("]"):
        if not reader.peek():
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_BRACKET)
        operator = _operator(reader)
        if operator is not None:
            if first:
                raise reader.syntax_error()
            linear = None
            backtracking.append(operator)
        elif reader.peek() == "[":
            reader.take()
            inner = read_set(reader, depth + 1)
            is_class = inner.linear is not None and not inner.negated and reader.pattern[reader.at - 2 : reader.at] == ":]"
            if linear is not None and is_class:
                linear.append(inner.linear or "")
            else:
                linear = None
            backtracking.append(f"[{'^' if inner.negated else ''}{inner.backtracking}]")
        else:
            item, written = _item(reader)
            if linear is not None:
                linear.append(item)
            backtracking.append(written)
        first = False
    return Set(None if linear is None else "".join(linear), "".join(backtracking), negated)


def _operator(reader: PatternReader) -> str | None:
    """Between two sets; one sign does, too, in front of a set in brackets."""
    for text, kept in (("--", 0), ("&&", 0), ("-[", 1), ("&[", 1)):
        if reader.pattern.startswith(text, reader.at):
            reader.at += len(text) - kept
            return text[0] * 2
    return None


def _posix(reader: PatternReader) -> Set | None:
    """[:alpha:], or None if it is not one after all."""
    end = reader.pattern.find(":]", reader.at)
    name = reader.pattern[reader.at : end] if end >= 0 else ""
    negated = name.startswith("^")
    name = name.removeprefix("^")
    if not name.isalnum():
        return None
    if name.lower() not in POSIX:
        raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION)
    reader.at = end + 2
    inside = POSIX[name.lower()]
    return Set(ranges(inside), inside, negated)


def _item(reader: PatternReader) -> tuple[str, str]:
    """A class, a character, or a range of characters: for RE2 and for `regex`."""
    known = None
    if reader.peek() == "\\":
        reader.take()
        known = reader.property()
        if known is not None:
            inside, negated = known
            return ranges(inside, negated), f"[^{inside}]" if negated else f"[{inside}]"
        reader.at -= 1
    least = _character(reader)
    following = reader.peek(2)
    if following[:1] != "-" or len(following) < 2 or following[1] in "]-[":
        return literal(least), literal(least)
    reader.take()
    most = _character(reader)
    if most < least:
        raise InvalidStatement(Condition.REGULAR_EXPRESSION_RANGE)
    text = f"{literal(least)}-{literal(most)}"
    return text, text


def _character(reader: PatternReader) -> str:
    character = reader.take()
    if character != "\\":
        return character
    escaped = reader.escaped_character()
    if escaped is None:
        if reader.peek() == "b":
            reader.take()
            return "\b"
        raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
    return escaped
