"""Regular expressions as MySQL 8 (ICU) writes them, run by Python's engine; REGEXP_REPLACE, _SUBSTR, _INSTR.

The two agree on nearly everything; what differs in spelling is translated: POSIX classes,
\\h, \\R, \\z, \\Q…\\E, $1 in replacements. Unicode properties (\\p{…}) beyond letters, digits and
case are refused, as are sets of sets ([a&&b]).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from dataflow.collation.coercion import merged_collation
from dataflow.collation.keys import is_case_sensitive
from dataflow.errors import Condition, InvalidStatement
from dataflow.expression import Expression
from dataflow.functions.registry import Domain, function
from dataflow.functions.strings import unbounded
from dataflow.types import BIGINT

Arguments = tuple[Expression, ...]

_POSIX = {
    "alpha": r"^\W\d_", "digit": r"\d", "alnum": r"^\W_", "upper": r"A-ZÀ-ÖØ-Þ", "lower": r"a-zß-öø-ÿ",
    "space": r"\s", "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": r"\w",
    "cntrl": r"\x00-\x1f\x7f", "print": r"\x20-\x7e\u00a0-\U0010ffff", "graph": r"\x21-\x7e\u00a1-\U0010ffff",
    "ascii": r"\x00-\x7f",
}  # fmt: skip
_PROPERTIES = {"L": "alpha", "Letter": "alpha", "Alphabetic": "alpha", "N": "digit", "Nd": "digit", "Lu": "upper",
               "Ll": "lower", "P": "punct", "Z": "space", "Alpha": "alpha", "Upper": "upper", "Lower": "lower"}  # fmt: skip
_ESCAPES = {"h": r"[ \t]", "H": r"[^ \t]", "R": r"(?:\r\n|[\n\v\f\r\x85\u2028\u2029])", "z": r"\Z", "Z": r"(?=\n?\Z)",
            "A": r"\A", "e": r"\x1b", "G": "", "X": "."}  # fmt: skip


def _refused(detail: str) -> InvalidStatement:
    return InvalidStatement(Condition.REGULAR_EXPRESSION_SYNTAX, detail)


def _class_item(name: str, negated: bool, detail: str) -> str:
    """A named class as the inside of a Python set."""
    items = _POSIX.get(name)
    if items is None:
        raise _refused(detail)
    if items.startswith("^") or negated:
        # Python has no set inside a set; these three are the ones it can say otherwise.
        known = {("alpha", False): r"a-zA-Zª-ɏͰ-῿Ⰰ-퟿豈-﷿𐀀-𯿿", ("alnum", False): r"0-9a-zA-Zª-ɏͰ-῿Ⰰ-퟿豈-﷿𐀀-𯿿",
                 ("digit", True): r"\D", ("space", True): r"\S", ("word", True): r"\W"}  # fmt: skip
        found = known.get((name, negated))
        if found is None:
            raise _refused(detail)
        return found
    return items


def _translate_set(pattern: str, at: int) -> tuple[str, int]:
    """The set that starts at `pattern[at]` in Python's spelling, and where it ends."""
    out, start = "[", at
    at += 1
    if pattern[at : at + 1] == "^":
        out, at = out + "^", at + 1
    if pattern[at : at + 1] == "]":
        out, at = out + r"\]", at + 1
    while at < len(pattern) and pattern[at] != "]":
        posix = re.compile(r"\[:(\^?)(\w+):\]").match(pattern, at)
        if posix is not None:
            out, at = out + _class_item(posix[2], bool(posix[1]), posix[0]), posix.end()
        elif pattern[at] == "[" or pattern[at : at + 2] in ("&&", "--"):
            raise _refused(pattern[start : at + 2])
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            out, at = out + pattern[at : at + 2], at + 2
        else:
            out, at = out + pattern[at], at + 1
    if at >= len(pattern):
        raise _refused(pattern[start:])
    return out + "]", at + 1


def translate(pattern: str) -> str:
    """An ICU pattern in Python's spelling."""
    out, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == "[":
            piece, at = _translate_set(pattern, at)
            out += piece
        elif character == "\\" and at + 1 < len(pattern):
            letter = pattern[at + 1]
            if letter == "Q":
                end = pattern.find("\\E", at)
                end = len(pattern) if end < 0 else end
                out, at = out + re.escape(pattern[at + 2 : end]), end + 2
            elif letter in "pP" and (named := re.compile(r"\{(\w+)\}").match(pattern, at + 2)):
                items = _class_item(_PROPERTIES.get(named[1], named[1]), False, named[0])
                out, at = out + ("[^" if letter == "P" else "[") + items + "]", named.end()
            else:
                out, at = out + _ESCAPES.get(letter, character + letter), at + 2
        else:
            out, at = out + character, at + 1
    return out


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str, match_type: str, case_sensitive: bool) -> re.Pattern[str]:
    """`match_type` holds MySQL's letters: c, i, m, n, u; the last of c and i wins."""
    flags = re.NOFLAG
    for letter in match_type:
        match letter:
            case "c":
                case_sensitive = True
            case "i":
                case_sensitive = False
            case "m":
                flags |= re.MULTILINE
            case "n":
                flags |= re.DOTALL
            case "u":
                pass
            case _:
                raise InvalidStatement(Condition.WRONG_ARGUMENTS, "regexp_like")
    if not case_sensitive:
        flags |= re.IGNORECASE
    if not pattern:
        raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION)
    try:
        return re.compile(translate(pattern), flags)
    except re.error as error:
        raise _refused(str(error)) from None


def is_sensitive(arguments: Arguments) -> bool:
    return is_case_sensitive(merged_collation(arguments[:2], "regexp"))


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
    sensitive = is_sensitive(arguments)

    def apply(value: str, pattern: str, position: int = 1, occurrence: int = 1, match_type: str = "") -> str | None:
        match = _occurrence(compile_pattern(pattern, match_type, sensitive), value, position, occurrence)
        return match[0] if match else None

    return apply


@function("regexp_instr", arguments=(*_SEARCH, Domain.INTEGER, Domain.TEXT), optional=4, result=BIGINT, specialise=True)
def regexp_instr(arguments: Arguments) -> Callable[..., int]:
    """With `return_option` 1 the position after the match."""
    sensitive = is_sensitive(arguments)

    def apply(
        value: str, pattern: str, position: int = 1, occurrence: int = 1, return_option: int = 0, match_type: str = ""
    ) -> int:
        if return_option not in (0, 1):
            raise InvalidStatement(Condition.WRONG_ARGUMENTS, "regexp_instr: return_option must be 1 or 0.")
        match = _occurrence(compile_pattern(pattern, match_type, sensitive), value, position, occurrence)
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
            raise _refused(name)
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
    sensitive = is_sensitive(arguments)

    def apply(
        value: str, pattern: str, new: str, position: int = 1, occurrence: int = 0, match_type: str = ""
    ) -> str:
        compiled = compile_pattern(pattern, match_type, sensitive)
        replacement = _replacement(new, compiled.groups)
        start = _start(value, position)
        if occurrence > 0:
            match = _occurrence(compiled, value, position, occurrence)
            return value[: match.start()] + replacement(match) + value[match.end() :] if match else value
        pieces, last = [], 0
        for match in compiled.finditer(value, start):
            pieces += [value[last : match.start()], replacement(match)]
            last = match.end()
        return "".join(pieces) + value[last:]

    return apply
