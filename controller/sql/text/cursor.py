"""A place in a token list: what a recursive-descent parser needs, with MySQL's syntax errors."""

from __future__ import annotations

from controller.sql.settings import Settings
from controller.sql.text.lexer import Token, TokenKind, literal_value, string_value, tokens
from controller.sql.text.parse import syntax_error
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import Value

IDENTIFIER_LENGTH_MAX = 64

_END = Token(TokenKind.OPERATOR, "", 0, 0)

RESERVED = frozenset(
    """ADD ALL ALTER AND AS ASC BETWEEN BIGINT BINARY BLOB BOTH BY CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE
    COLUMN CONSTRAINT CONVERT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATABASE DATABASES
    DECIMAL DEFAULT DELETE DESC DESCRIBE DISTINCT DIV DOUBLE DROP EACH ELSE EXISTS EXPLAIN FALSE FLOAT FOR FORCE FOREIGN
    FROM FULLTEXT GENERATED GRANT GROUP GROUPS HAVING IF IGNORE IN INDEX INNER INSERT INT INTEGER INTERVAL INTO IS JOIN
    KEY KEYS KILL LEFT LIKE LIMIT LINES LOAD LOCK LONG LONGBLOB LONGTEXT MATCH MEDIUMBLOB MEDIUMINT MEDIUMTEXT MOD
    NATURAL NOT NULL NUMERIC ON OPTION OR ORDER OUTER OVER PARTITION PRIMARY PROCEDURE RANGE RANK READ REAL REFERENCES
    REGEXP RENAME REPLACE REQUIRE RESTRICT RIGHT RLIKE ROW ROWS SCHEMA SCHEMAS SELECT SEPARATOR SET SHOW SMALLINT
    SPATIAL SQL STORED TABLE THEN TINYBLOB TINYINT TINYTEXT TO TRIGGER TRUE UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE
    USE USING VALUES VARBINARY VARCHAR VIRTUAL WHEN WHERE WHILE WINDOW WITH WRITE XOR ZEROFILL""".split()  # noqa: SIM905
)


class TokenReader:
    def __init__(self, sql: str, settings: Settings) -> None:
        self.sql = sql
        self._backslash = settings.backslash_escapes
        self.refuses_unknown_engines = "NO_ENGINE_SUBSTITUTION" in settings.sql_mode
        self._tokens = [*tokens(sql, settings.ansi_quotes, self._backslash)]
        while self._tokens and self._tokens[-1].text == ";":
            self._tokens.pop()
        self._position = 0

    @property
    def token(self) -> Token:
        return self.ahead(0)

    def ahead(self, distance: int) -> Token:
        position = self._position + distance
        return self._tokens[position] if position < len(self._tokens) else _END

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._tokens)

    def next(self) -> Token:
        token = self.token
        self._position += 1
        return token

    def back(self) -> None:
        self._position -= 1

    def mark(self) -> int:
        return self._position

    def back_to(self, mark: int) -> None:
        self._position = mark

    def error(self) -> InvalidStatement:
        """Error 1064 at the current token."""
        return syntax_error(self.sql, len(self.sql) if self.at_end else self.token.start)

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these keywords or operators."""
        return all((self.ahead(n).upper or self.ahead(n).text) == word for n, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        return any(self.at(word) for word in words)

    def accept(self, *words: str) -> bool:
        if not self.at(*words):
            return False
        self._position += len(words)
        return True

    def accept_any(self, *words: str) -> str:
        """The one of `words` that comes next, or an empty string."""
        for word in words:
            if self.accept(word):
                return word
        return ""

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.error()

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.error()

    def at_identifier(self) -> bool:
        token = self.token
        return token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.upper not in RESERVED)

    def identifier(self, any_word: bool = False) -> str:
        token = self.token
        if not self.at_identifier() and not (any_word and token.kind is TokenKind.WORD):
            raise self.error()
        self._position += 1
        name = identifier_name(token)
        if len(name) > IDENTIFIER_LENGTH_MAX:
            raise InvalidStatement(Condition.IDENTIFIER_TOO_LONG, name)
        return name

    def qualified_name(self) -> tuple[str | None, str]:
        """`table` or `database`.`table`."""
        first, second = self.identifier(), None
        if self.accept("."):
            second = self.identifier(any_word=True)
        if not (second if second is not None else first):
            raise InvalidStatement(Condition.WRONG_TABLE_NAME, "")
        return (None, first) if second is None else (first, second)

    def at_string(self) -> bool:
        return self.token.kind is TokenKind.STRING and self.token.text[0] in "'\""

    def string(self) -> str:
        if not self.at_string():
            raise self.error()
        return string_value(self.next().text, self._backslash)

    def integer(self) -> int:
        if self.token.kind is not TokenKind.NUMBER or not self.token.text.isdigit():
            raise self.error()
        return int(self.next().text)

    def at_literal(self) -> bool:
        return self.token.kind in (TokenKind.NUMBER, TokenKind.STRING)

    def literal(self) -> Value:
        if not self.at_literal():
            raise self.error()
        return literal_value(self.next().text, self._backslash)

    def word_or_string(self) -> str:
        if self.at_string():
            return self.string()
        if self.token.kind in (TokenKind.WORD, TokenKind.QUOTED, TokenKind.NUMBER):
            return identifier_name(self.next())
        raise self.error()

    def parenthesised(self) -> str:
        """The text between the `(` that comes next and its `)`."""
        self.expect("(")
        start = self.token.start
        depth = 1
        while True:
            if self.at_end:
                raise self.error()
            token = self.next()
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return self.sql[start : token.start].strip()

    def rest(self) -> str:
        """All that is left, as text."""
        text = "" if self.at_end else self.sql[self.token.start :]
        self._position = len(self._tokens)
        return text.rstrip("; \t\r\n")


def identifier_name(token: Token) -> str:
    if token.kind is not TokenKind.QUOTED:
        return token.text
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)
