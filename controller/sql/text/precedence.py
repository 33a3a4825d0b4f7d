"""The precedence of MySQL's operators, where sqlglot's differs.

The levels, loosest first: `:=`; OR, `||`; XOR; AND, `&&`; NOT; comparisons and IS, all alike and from the left; one of
BETWEEN, IN, LIKE, REGEXP, MEMBER OF; `|`; `&`; `<<`, `>>`; `+`, `-`; `*`, `/`, DIV, `%`, MOD; `^`; `||` of
PIPES_AS_CONCAT; unary `-`, `~`; `!`, and NOT under HIGH_NOT_PRECEDENCE; BINARY, COLLATE.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.tokens import TokenType

EDITS = "edits"
"""Where a node has how its text is to be changed for a reader without the modes: start, end, what is to be there instead."""


_NAMES = frozenset({TokenType.VAR, TokenType.STRING, TokenType.IDENTIFIER})


def called(name: str, *arguments: Any) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


class PrecedenceParser(MySQLParser):  # type: ignore[misc]
    """The dialect says which modes of `sql_mode` hold: `pipes_as_concat`, `high_not_precedence`."""

    EQUALITY: ClassVar[dict[Any, Any]] = {}
    COMPARISON: ClassVar[dict[Any, Any]] = {**MySQLParser.EQUALITY, **MySQLParser.COMPARISON}
    TERM: ClassVar[dict[Any, Any]] = {kind: node for kind, node in MySQLParser.TERM.items() if kind != TokenType.COLLATE}
    RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
        kind: MySQLParser.RANGE_PARSERS[kind]
        for kind in (TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.RLIKE, TokenType.MEMBER_OF)
    }
    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **MySQLParser.UNARY_PARSERS,
        TokenType.NOT: lambda self: self.parse_tight_not(),
    }

    def _parse_equality(self, parse_is: bool = True) -> Any:
        """NOT, and below it the comparisons."""
        if not self._match(TokenType.NOT, advance=False) or self._is_tight(self._curr):
            return super()._parse_equality(parse_is)
        self._advance()
        return exp.Not(this=self._operand(self._parse_equality()))

    def parse_tight_not(self) -> Any:
        if not self._is_tight(self._prev):
            self.raise_error("NOT is no operand here", self._prev)
        token = self._prev
        found = exp.Not(this=self._operand(self._parse_unary()))
        if token.text != "!":
            found.meta[EDITS] = ((token.start, token.end + 1, "! "),)
        return found

    def _is_tight(self, token: Any) -> bool:
        return token.text == "!" or bool(self.dialect.high_not_precedence)

    def _operand(self, found: Any) -> Any:
        if found is None:
            self.raise_error("Expected an operand")
        return found

    def _parse_exponent(self) -> Any:
        this = self._concatenation()
        while this is not None and self._match(TokenType.CARET):
            this = exp.BitwiseXor(this=this, expression=self._operand(self._concatenation()))
        return this

    def _concatenation(self) -> Any:
        start = self._curr.start if self._curr else 0
        this = self._parse_unary()
        while this is not None and self.dialect.pipes_as_concat and self._match(TokenType.DPIPE):
            pipes = self._prev
            this = called("CONCAT", this, self._operand(self._parse_unary()))
            end = self._prev.end + 1
            this.meta[EDITS] = (start, start, "CONCAT("), (pipes.start, pipes.end + 1, ", "), (end, end, ")")
        return this

    def _parse_lambda(self, alias: bool = False) -> Any:
        """An argument of a call. One that has a name, with or without AS, is of a loadable function; others refuse it."""
        this = super()._parse_lambda(alias=alias)
        if this is None or self._curr is None or self._curr.token_type not in _NAMES or self._next is None:
            return this
        if self._next.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
            return this
        self._advance()
        return exp.Alias(this=this, alias=exp.to_identifier(self._prev.text, quoted=True))

    def _parse_type(self, *arguments: Any, **options: Any) -> Any:
        this = super()._parse_type(*arguments, **options)
        while this is not None and self._match(TokenType.COLLATE):
            self._advance()
            this = exp.Collate(this=this, expression=exp.var(self._prev.text))
        return this

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        """One of IN, BETWEEN, LIKE, REGEXP or MEMBER OF: what follows it is no operand of another."""
        this = this or self._parse_bitwise()
        if parse_is:
            return self._parse_is(this) if self._match(TokenType.IS) else this
        index = self._index
        negate = self._match(TokenType.NOT)
        if self._match_text_seq("SOUNDS", "LIKE"):
            return exp.EQ(this=called("SOUNDEX", this), expression=called("SOUNDEX", self._parse_bitwise()))
        if not self._match_set(self.RANGE_PARSERS):
            self._retreat(index)
            return this
        found = self.RANGE_PARSERS[self._prev.token_type](self, this)
        return self._negate_range(found) if negate else found

    def _parse_between(self, this: Any) -> Any:
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("Expected AND")
        return exp.Between(this=this, low=low, high=self._parse_range())
