"""A pattern and the place in it that is read next; the escapes that stand for a character or a class of them."""

from __future__ import annotations

import unicodedata

from dataflow.errors import Condition, InvalidStatement
from dataflow.values.regular_expressions.characters import CLASSES

_ESCAPED = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-= ")


class PatternReader:
    """A pattern and the place in it that is read next."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def peek(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def take(self, count: int = 1) -> str:
        taken = self.pattern[self.at : self.at + count]
        self.at += count
        return taken

    def takes(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def until(self, end: str, condition: Condition) -> str:
        found = self.pattern.find(end, self.at)
        if found < 0:
            raise InvalidStatement(condition)
        text = self.pattern[self.at : found]
        self.at = found + len(end)
        return text

    def syntax_error(self) -> InvalidStatement:
        before = self.pattern[: self.at]
        line = before.count("\n") + 1
        return InvalidStatement(Condition.REGULAR_EXPRESSION_SYNTAX, line, len(before) - (before.rfind("\n") + 1) + 1)

    def escaped_character(self) -> str | None:
        """The character that the escape after a backslash stands for; None, with nothing taken, if it is not that kind."""
        letter = self.peek()
        if letter in _ESCAPED:
            self.take()
            return _ESCAPED[letter]
        if letter and not (letter.isascii() and letter.isalnum()):
            return self.take()
        digits = {"u": 4, "U": 8}.get(letter)
        if digits is not None:
            self.take()
            return self._code_point(self.take(digits), digits)
        if letter == "x":
            self.take()
            if self.takes("{"):
                return self._code_point(self.until("}", Condition.REGULAR_EXPRESSION_ESCAPE))
            text = self.take(1) + (self.take(1) if self.peek() in _HEX_DIGITS and self.peek() else "")
            return self._code_point(text)
        if letter == "0":
            self.take()
            digits_read = ""
            while len(digits_read) < 3 and self.peek() and self.peek() in "01234567":
                digits_read += self.take()
            if not digits_read or int(digits_read, 8) > 0xFF:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
            return chr(int(digits_read, 8))
        if letter == "c" and len(self.pattern) > self.at + 1:
            self.take()
            return chr(ord(self.take()) & 0x1F)
        if letter == "N" and self.peek(2) == "N{":
            self.take(2)
            try:
                return unicodedata.lookup(self.until("}", Condition.REGULAR_EXPRESSION_ESCAPE))
            except KeyError:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE) from None
        return None

    def _code_point(self, digits: str, count: int | None = None) -> str:
        if not digits or not set(digits) <= _HEX_DIGITS or (count is not None and len(digits) != count) or len(digits) > 8:
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
        point = int(digits, 16)
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
        return chr(point)

    def property(self) -> tuple[str, bool] | None:
        """The inside of a set for \\p{…}, \\d and their like, and whether it is negated."""
        letter = self.peek()
        if letter in ("p", "P") and letter:
            self.take()
            if not self.takes("{"):
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
            name = self.until("}", Condition.REGULAR_EXPRESSION_ESCAPE)
            negated = name.startswith("^")
            name = name.removeprefix("^")
            if not name or not set(name) <= _NAME:
                raise InvalidStatement(Condition.INVALID_REGULAR_EXPRESSION)
            return f"\\p{{{name}}}", (letter == "P") != negated
        if letter.lower() in CLASSES and letter:
            self.take()
            return CLASSES[letter.lower()], letter.isupper()
        return None
