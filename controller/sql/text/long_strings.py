"""Texts with strings of megabytes: read a window at a time, as within one call of `re` no other thread has a turn.
A breath is taken after each.

`shortened` puts a short mark into the place of what is inside of each long string, so that patterns for whole strings can be applied
to what is left; `restored` puts it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from dataflow.breath import breathe
from dataflow.errors import Condition, InvalidStatement

WINDOW = 1 << 15
"""So many characters are read in a few milliseconds at most."""
LONG = 1 << 16
"""Strings of so many characters are taken out, and shorter texts are read in one go."""
NEAR_LENGTH_MAX = 80
"""As much of the statement as MySQL quotes in a syntax error."""
_MARK = "\ud800"
"""No text that was decoded has this half of a pair. A number is between two of them, which is not taken for a literal, as it follows a letter."""
MARKED = rf"{_MARK}m[0-9]+{_MARK}"
_MARKED = re.compile(rf"{_MARK}m([0-9]+){_MARK}")
_HEX = re.compile(r"[0-9a-fA-F]*")
_WORD = re.compile(r"[\w$]")
_BITS = re.compile(r"[01]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_COMMENT = re.compile(r"#|--(?=[\s\x00-\x1f]|$)")


def syntax_error(sql: str, offset: int) -> InvalidStatement:
    """Error 1064 that quotes `sql` from `offset` on."""
    line = sql.count("\n", 0, offset) + 1
    return InvalidStatement(Condition.PARSE_ERROR, sql[offset : offset + NEAR_LENGTH_MAX], line)


@cache
def _inside(quote: str, backslash: bool) -> re.Pattern[str]:
    """The inside of a string, as far as it is certain within a window."""
    return re.compile(rf"(?>(?:[^{quote}\\]+|\\.|{quote}{quote})*)" if backslash else rf"(?>(?:[^{quote}]+|{quote}{quote})*)", re.DOTALL)


@cache
def _tokens(backslash: bool) -> re.Pattern[str]:
    """As many strings and other things as a window has whole; no comment."""
    strings = "|".join(rf"{quote}{_inside(quote, backslash).pattern}{quote}(?=[^{quote}])" for quote in "'\"")
    return re.compile(rf"(?>(?:[^'\"`#/-]+|{strings}|`[^`]*`|/(?=[^*])|-(?=[^-]))*)", re.DOTALL)


def _end_of_string(sql: str, start: int, backslash: bool) -> int:
    """Where the string that begins at `start` is closed."""
    quote, position, inside = sql[start], start + 1, _inside(sql[start], backslash)
    while True:
        match = inside.match(sql, position, position + WINDOW)
        assert match is not None
        position = match.end()
        breathe()
        if position >= len(sql):
            raise syntax_error(sql, start)
        if backslash and sql[position] == "\\":  # the window ends within a pair
            position += 2
        elif sql[position] == quote:
            if sql[position + 1 : position + 2] != quote:
                return position
            position += 2


def _end_of_comment(sql: str, start: int) -> int | None:
    """The place behind a comment that is none of MySQL's own, if one begins here."""
    if sql.startswith("/*", start):
        if sql.startswith("!", start + 2):
            return None
        end = sql.find("*/", start + 2)
        return len(sql) if end < 0 else end + 2
    if _LINE_COMMENT.match(sql, start) is None:
        return None
    end = sql.find("\n", start)
    return len(sql) if end < 0 else end


def _strings(sql: str, backslash: bool) -> Iterator[tuple[int, int]]:
    """Where the insides of long strings, of words and of comments begin and end."""
    position, whole = 0, _tokens(backslash)
    while position < len(sql):
        match = whole.match(sql, position, position + WINDOW)
        assert match is not None
        if position + WINDOW == match.end() and sql[position : match.end()].isalnum():
            yield from _digits(sql, position)
        position = match.end()
        if position == len(sql):
            return
        if sql[position] in "'\"":
            end = _end_of_string(sql, position, backslash)
            yield position + 1, end
            position = end + 1
        elif (end_of_comment := _end_of_comment(sql, position)) is not None:
            if sql.startswith("/*", position) and sql.startswith("*/", end_of_comment - 2):
                yield position + 2, end_of_comment - 2
            position = end_of_comment
        elif sql[position] == "`" and (closed := sql.find("`", position + 1)) >= 0:
            position = closed + 1
        elif sql[position] in "`#/-":
            position += 1


def _digits(sql: str, middle: int) -> Iterator[tuple[int, int]]:
    """The digits of a long 0x… that `middle` is in, if they begin just there."""
    around = max(0, middle - WINDOW), middle + WINDOW
    start = max(sql.rfind("0x", *around), sql.rfind("0X", *around))
    if start < 0 or sql[start - 1 : start].isalnum():
        return
    end = _run_of(_HEX, sql, start + 2)
    if end > middle + WINDOW and not _WORD.match(sql, end):
        yield start + 2, end


def _run_of(pattern: re.Pattern[str], sql: str, start: int, stop: int | None = None) -> int:
    stop = len(sql) if stop is None else stop
    while start < stop:
        match = pattern.match(sql, start, min(start + WINDOW, stop))
        assert match is not None
        if match.end() == start:
            return start
        start = match.end()
    return start


def shortened(sql: str, backslash: bool) -> tuple[str, list[str]]:
    """The text with marks in the places of the insides of long strings, and those; without any, the text itself."""
    if len(sql) < LONG or _MARK in sql:
        return sql, []
    pieces: list[str] = []
    taken: list[str] = []
    written = 0
    for start, end in _strings(sql, backslash):
        if end - start >= LONG and start >= written and _may_be_marked(sql, start, end):
            pieces += (sql[written:start], f"{_MARK}m{len(taken)}{_MARK}")
            taken.append(sql[start:end])
            written = end
    return ("".join([*pieces, sql[written:]]), taken) if taken else (sql, taken)


def _may_be_marked(sql: str, start: int, end: int) -> bool:
    """Whether it stays the literal that it is."""
    before = sql[max(0, start - 2) : start].lower()
    if before == "x'":
        return _run_of(_HEX, sql, start, end) == end
    if before == "b'":
        return _run_of(_BITS, sql, start, end) == end
    return not sql.startswith(("!", "+"), start) or before != "/*"


def restored(text: str, taken: list[str]) -> str:
    """The text, or a part of it, as it was."""
    return _MARKED.sub(lambda match: taken[int(match[1])], text) if _MARK in text else text


class Places:
    """Places in a text from which long strings were taken, as places in the whole text; asked for in their order."""

    def __init__(self, short: str, taken: list[str]) -> None:
        self._marks = [(match.start(), len(taken[int(match[1])]) - len(match[0])) for match in _MARKED.finditer(short)]
        self._next = 0
        self._shift = 0

    def __getitem__(self, place: int) -> int:
        while self._next < len(self._marks) and self._marks[self._next][0] < place:
            self._shift += self._marks[self._next][1]
            self._next += 1
        return place + self._shift


def windows(body: str, quote: str, backslash: bool) -> Iterator[str]:
    """The inside of a string in parts, none of which ends within a pair of characters that stands for one."""
    inside, start = _inside(quote, backslash), 0
    while start < len(body):
        match = inside.match(body, start, start + WINDOW)
        assert match is not None
        end = match.end() if match.end() > start else start + 1
        yield body[start:end]
        start = end
        breathe()


def several_strings(text: str, backslash: bool) -> Iterator[str]:
    """Quoted strings that stand side by side, one after the other."""
    start = 0
    while start < len(text):
        end = _end_of_string(text, start, backslash) + 1
        yield text[start:end]
        start = end
        while text[start : start + 1].isspace():
            start += 1


def has_surrogates(text: str) -> bool:
    """Whether bytes are in it that are no UTF-8."""
    if len(text) < LONG:
        try:
            text.encode()
        except UnicodeEncodeError:
            return True
        return False
    return not text.isascii() and any(_SURROGATE.search(text, start, start + LONG) for start in range(0, len(text), LONG))


def bytes_of_digits(digits: str, bits: int) -> bytes:
    """What is written with digits of so many bits each."""
    per_byte = 8 // bits
    digits = "0" * (-len(digits) % per_byte) + digits
    base = 1 << bits
    parts = (digits[start : start + WINDOW] for start in range(0, len(digits), WINDOW))
    return b"".join([int(part, base).to_bytes(len(part) // per_byte, "big") for part in parts])
