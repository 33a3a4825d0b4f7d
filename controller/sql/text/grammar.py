"""MySQL's grammar, where sqlglot's differs: tokens, functions, statements, parameters.

sqlglot rewrites what it knows into its own dialect-neutral form, which loses what MySQL says
(formats of dates, names of functions, types of casts). So this dialect keeps every function as
`Anonymous` under the name it was called by, casts as CAST(value, 'type text'), and numbers the
parameters by where they stand. Items of SELECT lists remember their text: it is their name.
Operators are in `precedence`, the order of options in `token_order`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import ParseError
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.tokens import TokenType

from controller.sql.text.precedence import PrecedenceParser, called
from controller.sql.text.token_order import in_order
from dataflow.functions.weighing import PAD_WITH_SPACES

_OPERATORS = frozenset({*"()[]{}&^:,.-=><%/\\+;*~|@#$!", "<>", "!=", "<=", ">=", "<=>", "&&", "||", "->", "->>", ":=", "@@"})


_OPEN_LISTS = frozenset(
    {
        TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM, TokenType.GROUP_BY,
        TokenType.ORDER_BY, TokenType.LIMIT, TokenType.SET, TokenType.VALUES,
    }
)  # fmt: skip
"""What a list begins with, or goes on after."""


class _Tokenizer(MySQL.Tokenizer):  # type: ignore[misc]
    KEYWORDS: ClassVar[dict[Any, Any]] = {
        word: kind
        for word, kind in MySQL.Tokenizer.KEYWORDS.items()
        if word[0].isalpha() or word[0] == "_" or word in _OPERATORS
    }
    COMMANDS = MySQL.Tokenizer.COMMANDS - {TokenType.REPLACE}


class _Parser(PrecedenceParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        # what EXISTS looks like if its query is in parentheses of its own
        "EXISTS": lambda given: (
            exp.Exists(this=given[0])
            if len(given) == 1 and isinstance(given[0], exp.Query)
            else exp.Anonymous(this="EXISTS", expressions=given)
        ),
    }
    TABLE_ALIAS_TOKENS: ClassVar[Any] = MySQLParser.TABLE_ALIAS_TOKENS - {TokenType.SET}
    FUNC_TOKENS: ClassVar[set[Any]] = {*MySQLParser.FUNC_TOKENS, TokenType.DEFAULT}
    FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {
        **{
            name: MySQLParser.FUNCTION_PARSERS[name]
            for name in ("GROUP_CONCAT", "MATCH", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
        },
        "VALUES": lambda self: self.parse_inserted(),
        "ALL": lambda self: exp.All(this=self._parse_select_or_expression()),
        "CAST": lambda self: self.parse_cast(),
        "CONVERT": lambda self: self.parse_convert(),
        "CHAR": lambda self: self.parse_char(),
        "EXTRACT": lambda self: self.parse_extract(),
        "JSON_TABLE": lambda self: self.parse_json_table(),
        "WEIGHT_STRING": lambda self: self.parse_weight_string(),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {
        "ANY": MySQLParser.NO_PAREN_FUNCTION_PARSERS["ANY"],
        "CASE": MySQLParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        TokenType.DOT: None,
        TokenType.ARROW: lambda self, this, path: called("JSON_EXTRACT", this, path),
        TokenType.DARROW: lambda self, this, path: called("JSON_UNQUOTE", called("JSON_EXTRACT", this, path)),
    }
    LAMBDAS: ClassVar[dict[Any, Any]] = {}
    """f(d->'$.n') reads a document; MySQL has no lambdas."""
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {
        **MySQLParser.PLACEHOLDER_PARSERS,
        TokenType.PLACEHOLDER: lambda self: self.parse_mark(self._prev),
    }
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {
        **MySQLParser.STATEMENT_PARSERS,
        TokenType.REPLACE: lambda self: self.parse_replace(),
    }

    def parse(self, raw_tokens: Any, sql: str) -> Any:
        raw_tokens = in_order(raw_tokens)
        self._check_names(raw_tokens)
        self._check_commas(raw_tokens)
        self.marks: dict[int, tuple[int, int]] = {}
        number = 0
        for token in raw_tokens:
            if token.token_type == TokenType.PLACEHOLDER:
                several = _SEVERAL.match(sql, token.end + 1)
                count = 1 if several is None else int(several[1])
                self.marks[token.start] = (number, count)
                number += count
        return super().parse(raw_tokens, sql)

    def parse_mark(self, token: Any) -> Any:
        number, count = self.marks[token.start]
        found = exp.Placeholder(this=str(number))
        if count > 1:
            found.meta["count"] = count
        return found

    def _check_names(self, raw_tokens: Any) -> None:
        """A name has three parts at most; a longer one is refused before it costs anything."""
        dots = [index for index, token in enumerate(raw_tokens) if token.token_type == TokenType.DOT]
        for first, last in zip(dots, dots[2:]):
            if last == first + 4:
                self.raise_error("Too many parts in a name", raw_tokens[last])

    def _check_commas(self, raw_tokens: Any) -> None:
        """Something has to come before a comma; sqlglot would do without."""
        for before, token in pairwise(raw_tokens):
            if token.token_type == TokenType.COMMA and before.token_type in _OPEN_LISTS:
                self.raise_error("Nothing before a comma", token)

    def raise_error(self, message: str, token: Any = None) -> None:
        token = token or self._curr
        raise ParseError(message, errors=[{"offset": token.start if token else len(self.sql)}])

    def _parse_csv(self, parse_method: Any, sep: Any = TokenType.COMMA) -> Any:
        """An item that is missing after a comma is an error, not skipped."""
        count = 0

        def parse_item() -> Any:
            nonlocal count
            item = parse_method()
            if item is None and count:
                self.raise_error("Expected an item after the comma")
            count += 1
            return item

        return super()._parse_csv(parse_item, sep)

    def _parse_expression(self) -> Any:
        start = self._curr
        this = self._parse_assignment()
        if this is not None and self._prev is not None:
            this.meta["text"] = self.sql[start.start : self._prev.end + 1]
        return self._parse_alias(this)

    def _parse_projections(self) -> Any:
        projections = super()._parse_projections()
        if not projections[0]:
            self.raise_error("Expected an expression")
        return projections

    def _parse_ordered(self, parse_method: Any = None) -> Any:
        return super()._parse_ordered(parse_method or self._parse_assignment)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        """What an item of GROUP BY is tried as: here it may be an assignment."""
        found = super()._parse_cube_or_rollup(with_prefix)
        return found if found is not None or with_prefix else self._parse_assignment()

    def _parse_group(self, skip_group_by_token: bool = False) -> Any:
        group = super()._parse_group(skip_group_by_token)
        if group is not None and not group.expressions:
            self.raise_error("Expected an expression")
        return group

    def _parse_join(self, *arguments: Any, **options: Any) -> Any:
        comma = self._match(TokenType.COMMA, advance=False)
        join = super()._parse_join(*arguments, **options)
        if comma and join is not None:
            join.meta["comma"] = True
        return join

    def _parse_value(self, values: bool = True) -> Any:
        self._match(TokenType.ROW) or self._match_text_seq("ROW")
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("Expected a row in parentheses")
        return super()._parse_value(values)

    def _parse_insert(self) -> Any:
        self._match_texts(("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"))
        insert = super()._parse_insert()
        if not insert.expression:
            self.raise_error("Expected VALUES, SET or SELECT")
        return insert

    def parse_replace(self) -> Any:
        insert = self._parse_insert()
        insert.set("overwrite", True)
        return insert

    def _parse_update(self) -> Any:
        self._match_text_seq("LOW_PRIORITY")
        ignore = self._match(TokenType.IGNORE)
        update = super()._parse_update()
        if not update.expressions:
            self.raise_error("Expected SET")
        update.meta["ignore"] = bool(ignore)
        return update

    def _parse_delete(self) -> Any:
        ignore = False
        while self._match_texts(("LOW_PRIORITY", "QUICK", "IGNORE")):
            ignore = ignore or self._prev.text.upper() == "IGNORE"
        index = self._index
        if not self._match(TokenType.FROM, advance=False):
            self._parse_csv(self._parse_table)
            if not self._match(TokenType.FROM, advance=False):
                self.raise_error("Expected FROM")
            self._retreat(index)
        delete = super()._parse_delete()
        delete.meta["ignore"] = ignore
        return delete

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        """INTERVAL value unit; the function INTERVAL(…) and a column of that name are not one."""
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        value = self._parse_disjunction()
        if value is None or self._curr is None or self._curr.text.upper() not in self.dialect.VALID_INTERVAL_UNITS:
            self._retreat(index)
            return None
        self._advance()
        return exp.Interval(this=value, unit=exp.var(self._prev.text.upper()))

    def _parse_escape(self, this: Any) -> Any:
        if not self._match(TokenType.ESCAPE):
            return this
        return self.expression(exp.Escape(this=this, expression=self._parse_unary()))

    def parse_cast(self) -> Any:
        value = self._parse_assignment()
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expected AS")
        return called("CAST", value, exp.Literal.string(self._text_to_parenthesis()))

    def parse_convert(self) -> Any:
        value = self._parse_assignment()
        if self._match(TokenType.USING):
            return called("CAST", value, exp.Literal.string("CHAR CHARACTER SET " + self._text_to_parenthesis()))
        if not self._match(TokenType.COMMA):
            self.raise_error("Expected a type")
        return called("CAST", value, exp.Literal.string(self._text_to_parenthesis()))

    def parse_char(self) -> Any:
        arguments = self._parse_csv(self._parse_assignment)
        if self._match(TokenType.USING):
            charset = self._text_to_parenthesis()
            given = called("VALID BYTES", called("CHAR", *arguments), exp.Literal.string(charset.strip("'\"`").lower()))
            return called("CAST", given, exp.Literal.string("CHAR CHARACTER SET " + charset))
        return called("CHAR", *arguments)

    def parse_inserted(self) -> Any:
        """VALUES(column), also with the table that it is a column of."""
        parts = [self._parse_id_var()]
        while self._match(TokenType.DOT):
            parts.append(self._parse_id_var())
        return called("VALUES", parts[0] if len(parts) == 1 else exp.column(*reversed(parts)))

    def _match(self, token_type: Any, advance: bool = True, expression: Any = None) -> Any:
        """ON DUPLICATE KEY is no condition of the join before it."""
        if token_type is TokenType.ON and self._next is not None and self._next.text.upper() == "DUPLICATE":
            return None
        return super()._match(token_type, advance, expression)

    def parse_weight_string(self) -> Any:
        """Of CHAR(n) n characters; with three numbers the length of the result, how many characters, and how they are padded."""
        value = self._parse_assignment()
        if self._match(TokenType.ALIAS):
            if self._match_text_seq("BINARY", advance=False):
                return called("WEIGHT_STRING", called("CAST", value, exp.Literal.string(self._text_to_parenthesis())))
            if not self._match_text_seq("CHAR"):
                self.raise_error("Expected a type")
            count = self._parse_wrapped(self._parse_number)
            if count.this == "0":
                self.raise_error("Expected a length", self._tokens[self._index - 2])
            return called("WEIGHT_STRING", value, exp.Null(), count, exp.Literal.number(PAD_WITH_SPACES))
        numbers = []
        while self._match(TokenType.COMMA):
            numbers.append(self._parse_primary())
        if len(numbers) not in (0, 3):
            self.raise_error("Expected three numbers")
        return called("WEIGHT_STRING", value, *numbers)

    def parse_json_table(self) -> Any:
        document = self._parse_assignment()
        if not self._match(TokenType.COMMA):
            self.raise_error("Expected a path")
        return called("JSON_TABLE", document, exp.Literal.string(self._text_to_parenthesis()))

    def parse_extract(self) -> Any:
        self._advance()
        unit = exp.var(self._prev.text.upper())
        if not self._match(TokenType.FROM):
            self.raise_error("Expected FROM")
        return exp.Extract(this=unit, expression=self._parse_assignment())

    def _text_to_parenthesis(self) -> str:
        """What is written up to the `)` that closes the function, which is left in place."""
        start = self._curr.start if self._curr else len(self.sql)
        depth = 0
        while self._curr and not (depth == 0 and self._curr.token_type == TokenType.R_PAREN):
            depth += (self._curr.token_type == TokenType.L_PAREN) - (self._curr.token_type == TokenType.R_PAREN)
            self._advance()
        text: str = self.sql[start : self._prev.end + 1]
        if self._curr is None or not text:
            self.raise_error("Expected a type")
        return text


_SEVERAL = re.compile(r"/\*\x01(\d+)\*/")


class MillraceDialect(MySQL):  # type: ignore[misc]
    """MySQL as the planner reads it, under the modes that change the grammar."""

    SUPPORTS_VALUES_DEFAULT = False  # DEFAULT is read as a name, DEFAULT(column) as a call
    Tokenizer = _Tokenizer
    Parser = _Parser

    def __init__(self, modes: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.pipes_as_concat = "PIPES_AS_CONCAT" in modes
        self.high_not_precedence = "HIGH_NOT_PRECEDENCE" in modes
