"""A compiled pattern: which engine may match which text, and for how long.

RE2 is used wherever it finds what ICU would: it lacks back-references and look-around, it knows \\b only
among ASCII characters, and only \\n ends a line for it. Everything else goes to `regex`, which
backtracks: it is stopped after a time that grows with the text (error 3699), and is not given texts that its stack would
take too much memory for (error 3698). Time is the processor's, so a busy machine ends no pattern.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

import re2
import regex

from dataflow.errors import Condition, InvalidStatement
from dataflow.values.collation.keys import is_case_sensitive
from dataflow.values.regular_expressions.characters import LINE_ENDS
from dataflow.values.regular_expressions.syntax import Translation, translate

TIME_LIMIT_S = 0.1
TIME_PER_CHARACTER_S = 2e-7
TIME_PER_MATCH_S = 5e-5
TIME_LIMIT_MAX_S = 5.0
"""What a search may take: a constant, and what a linear one needs for its text and its matches, up to a maximum."""

BACKTRACKED_LENGTH_MAX = 4 << 20
PATTERN_LENGTH_MAX = 16 << 10
_LONE = re.compile("[\ud800-\udfff]")
"""Bytes that are no text (see `dataflow.values.conversion`), which RE2 does not take."""
_MEMORY_MAX = 2 << 20
"""Of RE2, for each pattern that is kept."""
_BROKEN = re.compile("[\ud800-\udfff]")


class Match(Protocol):
    def start(self) -> int: ...

    def end(self) -> int: ...

    def __getitem__(self, group: int, /) -> str | None: ...


class RegularExpression:
    """Finds what MySQL would find, or raises InvalidStatement when that takes too long."""

    def __init__(self, pattern: str, ignore_case: bool, multiline: bool, dot_all: bool, unix_lines: bool) -> None:
        if len(pattern) > PATTERN_LENGTH_MAX:
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_SIZE)
        self._translation = translation = translate(_readable(pattern), multiline, dot_all, unix_lines)
        self.groups = translation.groups
        self.names = translation.names
        self._line_ends = frozenset("\n" if unix_lines else LINE_ENDS)
        self._odd_line_ends = self._line_ends - {"\n"}
        self._linear = _linear(translation, ignore_case, captures=False)
        self._capturing: re2._Regexp | None = None
        self._plain = self._linear is not None and translation.fits_any_text
        self._ignore_case = ignore_case
        self._backtracking: regex.Pattern[str] | None = None
        if self._linear is None:
            self._backtracker()

    def is_in(self, text: str) -> bool:
        """Whether it matches somewhere in `text`."""
        text = _readable(text)
        if self._plain or self._is_linear_for(text):
            try:
                return self._linear.search(text) is not None  # type: ignore[union-attr]
            except UnicodeEncodeError:  # bytes that are no text, which RE2 does not take
                return next(self._backtracked(text, 0), None) is not None
        return next(self.matches(text), None) is not None

    def matches(self, text: str, start: int = 0, captures: bool = False) -> Iterator[Match]:
        """One after the other from `start` on, none overlapping; their groups are known with `captures`."""
        found: Iterator[Match]
        text = _readable(text)
        if self._is_linear_for(text):
            if captures and self._capturing is None:
                self._capturing = _linear(self._translation, self._ignore_case, captures=True)
            chosen = self._capturing if captures else self._linear
            assert chosen is not None
            found = chosen.finditer(text, start)
        else:
            found = self._backtracked(text, start)
        start_s, allowed_s = time.process_time(), _allowance_s(text)
        last = -1
        for match in found:
            if time.process_time() - start_s > min(allowed_s, TIME_LIMIT_MAX_S):
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_TIME_OUT)
            allowed_s += TIME_PER_MATCH_S
            if match.start() == match.end() == last:  # RE2's wrapper finds some empty matches twice
                continue
            last = match.start() if match.start() == match.end() else -1
            yield match

    def _is_linear_for(self, text: str) -> bool:
        if self._linear is None:
            return False
        wanted = self._translation
        if wanted.has_word_boundary and not text.isascii():
            return False
        if not text.isascii() and _LONE.search(text):
            return False
        if (wanted.has_line_end or wanted.is_multiline) and text and text[-1] in self._line_ends:
            return False
        return not wanted.is_multiline or not any(end in text for end in self._odd_line_ends)

    def _backtracker(self) -> regex.Pattern[str]:
        if self._backtracking is None:
            flags = regex.VERSION1 | (regex.IGNORECASE if self._ignore_case else 0)
            try:
                self._backtracking = regex.compile(self._translation.backtracking, flags, cache_pattern=False)
            except RecursionError:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_SIZE) from None
            except (regex.error, OverflowError):
                raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION) from None
        return self._backtracking

    def _backtracked(self, text: str, start: int) -> Iterator[Match]:
        if len(text) > BACKTRACKED_LENGTH_MAX:
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_STACK)
        search = self._backtracker().search
        timeout_s = _allowance_s(text)
        while start <= len(text):
            try:
                match = search(text, start, timeout=timeout_s)
            except TimeoutError:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_TIME_OUT) from None
            except MemoryError:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_STACK) from None
            if match is None:
                return
            yield match
            start = match.end() + (match.end() == match.start())


def _readable(text: str) -> str:
    """With a mark for each byte that is no character: no engine takes those."""
    return text if text.isascii() else _BROKEN.sub("\ufffd", text)


def _allowance_s(text: str) -> float:
    return TIME_LIMIT_S + len(text) * TIME_PER_CHARACTER_S


def _linear(translation: Translation, ignore_case: bool, captures: bool) -> re2._Regexp | None:
    """None where RE2 cannot: what it lacks, more than 1,000 repetitions, too large a program."""
    if translation.linear is None:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_MAX
    options.case_sensitive = not ignore_case
    options.never_capture = not captures
    try:
        return re2.compile(translation.linear, options)
    except (re2.error, UnicodeEncodeError):
        return None


@lru_cache(maxsize=256)
def compiled(pattern: str, collation: str, match_type: str = "") -> RegularExpression:
    """`match_type` as REGEXP_LIKE has it, the last letter wins: c, i, m, n, u. The collation says whether case matters."""
    if not pattern:
        raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION)
    if not set(match_type) <= set("cimnu"):
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "regexp_like")
    ignore_case = not is_case_sensitive(collation)
    for letter in match_type:
        ignore_case = letter == "i" or (ignore_case and letter != "c")
    return RegularExpression(pattern, ignore_case, "m" in match_type, "n" in match_type, "u" in match_type)
