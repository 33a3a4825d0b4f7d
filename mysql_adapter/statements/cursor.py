"""A reading position in a statement's tokens, for the statements that are parsed by hand."""

from __future__ import annotations

from controller.sql.lexer import Token, TokenKind, string_value, tokens
from controller.sql.settings import Settings
from dataflow.errors import Condition, InvalidStatement

NEAR_CHARACTERS_MAX = 80


class TokenCursor:
    def __init__(self, sql: str, settings: Settings) -> None:
        self.sql = sql
        self.settings = settings
        self._tokens = list(tokens(sql, settings.ansi_quotes, settings.backslash_escapes))
        if self._tokens and self._tokens[-1].text == ";":
            self._tokens.pop()
        self._position = 0

    @property
    def token(self) -> Token | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._tokens)

    def peek(self, *words: str) -> bool:
        """Whether these keywords or operators come next."""
        for offset, word in enumerate(words):
            index = self._position + offset
            if index >= len(self._tokens):
                return False
            token = self._tokens[index]
            if (token.upper or token.text) != word or token.kind in (TokenKind.QUOTED, TokenKind.STRING):
                return False
        return True

    def accept(self, *words: str) -> bool:
        if self.peek(*words):
            self._position += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str | None:
        for word in words:
            if self.accept(word):
                return word
        return None

    def peek_any(self, *words: str) -> bool:
        return any(self.peek(word) for word in words)

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.error()

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.error()

    def take(self) -> Token:
        token = self.token
        if token is None:
            raise self.error()
        self._position += 1
        return token

    def mark(self) -> int:
        return self._position

    def back_to(self, mark: int) -> None:
        self._position = mark

    def identifier(self) -> str:
        token = self.take()
        if token.kind is TokenKind.WORD:
            return token.text
        if token.kind is TokenKind.QUOTED:
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        self._position -= 1
        raise self.error()

    def name_or_string(self) -> str:
        token = self.token
        if token is not None and token.kind is TokenKind.STRING:
            return self.string()
        return self.identifier()

    def string(self) -> str:
        token = self.take()
        if token.kind is not TokenKind.STRING:
            self._position -= 1
            raise self.error()
        text = token.text
        start = min(index for index in (text.find("'"), text.find('"')) if index >= 0)
        return string_value(text[start:], self.settings.backslash_escapes)

    def number(self) -> int:
        token = self.take()
        if token.kind is not TokenKind.NUMBER or not token.text.isdigit():
            self._position -= 1
            raise self.error()
        return int(token.text)

    def table_name(self) -> tuple[str | None, str]:
        """(database, name) of `name` or `database.name`."""
        first = self.identifier()
        if self.accept("."):
            return first, self.identifier()
        return None, first

    def expression(self, *stops: str) -> str:
        """The text up to one of `stops` outside of parentheses, or to the end."""
        start = self.token
        if start is None:
            raise self.error()
        depth = 0
        end = start.start
        while (token := self.token) is not None:
            word = token.upper or token.text
            if depth == 0 and word in stops and token.kind not in (TokenKind.QUOTED, TokenKind.STRING):
                break
            depth += (token.text == "(") - (token.text == ")")
            end = token.end
            self._position += 1
        if end == start.start:
            raise self.error()
        return self.sql[start.start : end]

    def rest(self) -> str:
        token = self.token
        return "" if token is None else self.sql[token.start : self._tokens[-1].end]

    def error(self) -> InvalidStatement:
        """1064, pointing here."""
        token = self.token
        start = len(self.sql) if token is None else token.start
        near = self.sql[start : start + NEAR_CHARACTERS_MAX]
        return InvalidStatement(Condition.PARSE_ERROR, near, self.sql.count("\n", 0, start) + 1)
