"""Sets of characters as ranges of code points: what a property or a class of ICU means, for an engine that lacks its name.

The `regex` library knows Unicode's properties; RE2 is given the ranges that `regex` finds, so both
engines agree on every class.
"""

from __future__ import annotations

from functools import cache, lru_cache

import regex

from dataflow.errors import Condition, InvalidStatement

LINE_ENDS = "\n\v\f\r\x85\u2028\u2029"
"""What ends a line unless the match type says `u`."""

CLASSES = {
    "d": r"\p{Nd}",
    "s": r"\p{White_Space}",
    "w": r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d",
    "h": r"\t\p{Zs}",
    "v": r"\n\v\f\r\x85\u2028\u2029",
}
"""What the escapes \\d, \\s, … stand for, as the inside of a set of `regex`; in upper case they are negated."""

POSIX = {
    "alnum": r"\p{Alphabetic}\p{Nd}",
    "alpha": r"\p{Alphabetic}",
    "ascii": r"\x00-\x7f",
    "blank": r"\t\p{Zs}",
    "cntrl": r"\p{Cc}",
    "digit": r"\p{Nd}",
    "graph": r"\p{graph}",
    "lower": r"\p{Lowercase}",
    "print": r"\p{print}",
    "punct": r"\p{P}",
    "space": r"\p{White_Space}",
    "upper": r"\p{Uppercase}",
    "word": CLASSES["w"],
    "xdigit": r"\p{Nd}A-Fa-f\uff21-\uff26\uff41-\uff46",
}


@cache
def _characters() -> str:
    """Every character, in order."""
    return "".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0x110000)))


@lru_cache(maxsize=256)
def ranges(inside: str, negated: bool = False) -> str:
    """The inside of a set of RE2 that holds what `[inside]` of `regex` does."""
    source = f"(?V1)[{'^' if negated else ''}{inside}]+"
    try:
        runs = regex.compile(source, cache_pattern=False).finditer(_characters())
    except regex.error:
        raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION) from None
    return "".join(
        f"\\x{{{ord(run[0][0]):x}}}-\\x{{{ord(run[0][-1]):x}}}" if len(run[0]) > 1 else f"\\x{{{ord(run[0]):x}}}"
        for run in runs
    )


def literal(character: str) -> str:
    """A character that stands for itself, for both engines, inside of sets and outside."""
    if character.isalnum() or character > "\x7f" or character == "_":
        return character
    return f"\\x{ord(character):02x}"
