"""The planner's token cursor with what hand-parsed statements need besides: going back, and expressions."""

from __future__ import annotations

from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from controller.sql.text.lexer import TokenKind, without_comments


class TokenCursor(TokenReader):
    def __init__(self, sql: str, settings: Settings) -> None:
        if "/*!" in sql:  # an expression's text must not begin or end inside of one
            sql = without_comments(sql, settings.backslash_escapes)
        super().__init__(sql, settings)
        self.settings = settings

    def expression(self, *stops: str) -> str:
        """The text up to one of `stops` outside of parentheses, or to the end."""
        start = end = self.token.start
        depth = 0
        while not self.at_end:
            token = self.token
            word = token.upper or token.text
            if depth == 0 and word in stops and token.kind not in (TokenKind.QUOTED, TokenKind.STRING):
                break
            depth += (token.text == "(") - (token.text == ")")
            end = token.end
            self._position += 1
        if end == start:
            raise self.error()
        return self.sql[start:end]
