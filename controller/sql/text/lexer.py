"""MySQL text as tokens: the one place that knows quoting, comments and literals.

One compiled regular expression for each combination of the SQL modes that change quoting
(ANSI_QUOTES, NO_BACKSLASH_ESCAPES). Text is str decoded from UTF-8 with `surrogateescape`, so
that bytes which are no UTF-8 (the inside of `_binary'…'`) survive until their literal is read.
Comments are dropped and versioned comments (`/*!40101 … */`) are opened up, as MySQL does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import isinf

from controller.sql.text.long_strings import (
    LONG,
    MARKED,
    Places,
    bytes_of_digits,
    has_surrogates,
    restored,
    several_strings,
    shortened,
    syntax_error,
    windows,
)
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.collation import CHARSETS
from dataflow.values.numerals import written_decimal
from dataflow.values.types import Value

LITERALS_AT_ONCE = 5_000
"""They are found in a few milliseconds."""
SERVER_VERSION = 80036
"""Versioned comments up to this version are executed."""


class TokenKind(Enum):
    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    VARIABLE = "variable"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is as written; `upper` is it in upper case for words, so keywords compare quickly."""

    kind: TokenKind
    text: str
    start: int
    end: int
    upper: str = ""


_HEX = rf"(?:[0-9a-fA-F]+|{MARKED})"
_NUMBER = rf"(?:0[xX]{_HEX}|0b[01]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?![\w$])"
_INTRODUCER = r"(?:_[a-zA-Z][a-zA-Z0-9]*\s*|[nN])?"
_DIGITS = rf"[xX]'{_HEX}?'|[bB]'(?:[01]*|{MARKED})'"
_WRITTEN_BYTES = rf"0[xX]{_HEX}(?![\w$])|0b[01]+(?![\w$])"


def _quoted(quote: str, backslash: bool) -> str:
    if backslash:
        return rf"{quote}[^{quote}\\]*(?:(?:\\.|{quote}{quote})[^{quote}\\]*)*{quote}"
    return rf"{quote}[^{quote}]*(?:{quote}{quote}[^{quote}]*)*{quote}"


def _string(ansi_quotes: bool, backslash: bool) -> str:
    single = _quoted("'", backslash)
    double = _quoted('"', backslash)
    one = single if ansi_quotes else f"(?:{single}|{double})"
    return rf"{one}(?:\s+{one})*"


COMMENT = r"/\*(?![!])(?:.*?\*/|.*)|--(?=[\s\x00-\x1f]|$)[^\n]*|\#[^\n]*"


@cache
def literal_splitter(ansi_quotes: bool, backslash: bool, introducers: bool, signs: bool) -> re.Pattern[str]:
    """For `split`: finds literals, in one group, and nothing else.

    It begins with a set of characters, which `re` skips to quickly; what may come before is
    asked after that. Without `introducers` it leaves `_binary'…'`, X'…' and the like alone.
    With `signs`, NULL and signed numbers that directly follow a `(` or `,` count as literals.
    """
    one = _string(ansi_quotes, backslash)
    strings = rf"|(?<=')(?:{_quoted(chr(39), backslash)[1:]})(?:\s+{one})*"
    first = "'0-9."
    if not ansi_quotes:
        strings += rf"|(?<=\")(?:{_quoted(chr(34), backslash)[1:]})(?:\s+{one})*"
        first += '"'
    found = (
        rf"(?<=[0-9])(?:(?<=0)[xX]{_HEX}|(?<=0)b[01]+|[0-9]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)(?![\w$])"
        r"|(?<=\.)[0-9]+(?:[eE][-+]?[0-9]+)?(?![\w$])" + strings
    )
    if signs:
        after = r"(?:(?<=[(,].)|(?<=[(,]\s.))"
        found += rf"|(?<=[-+]){after}(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w$])"
        found += rf"|(?<=[nN]){after}[uU][lL][lL](?=\s?[,)])"
        first += r"+\-nN"
    if introducers:
        found += rf"|(?<=_)[a-zA-Z][a-zA-Z0-9]*\s*(?:{one}|{_DIGITS}|{_WRITTEN_BYTES})"
        found += rf"|(?<=[nN]){one}|(?<=[xX])'{_HEX}?'|(?<=[bB])'(?:[01]*|{MARKED})'"
        first += "_nNxXbB"
    return re.compile(rf"([{first}](?<![\w$@.].)(?:{found}))", re.DOTALL)


def split_literals(splitter: re.Pattern[str], sql: str, backslash: bool = True) -> list[str]:
    """As `splitter.split(sql)`, some literals at a time: within one call of `re` no other thread has a turn."""
    sql, taken = shortened(sql, backslash)
    if taken:
        return [restored(piece, taken) for piece in split_literals(splitter, sql, backslash)]
    pieces: list[str] = []
    rest = sql
    while True:
        found = splitter.split(rest, LITERALS_AT_ONCE)
        if len(found) <= 2 * LITERALS_AT_ONCE:
            return pieces + found if pieces else found
        rest = found.pop()
        pieces += found
        if not rest.startswith((",", ")", " ")):  # what comes next may depend on what was before
            return splitter.split(sql)


INTRODUCERS = (" _", "(_", ",_", "=_", "\n_", "\t_", "X'", "x'", "b'", "B'", "N'", "n'")
"""A text without any of these has no introduced literal worth finding."""


@cache
def _scanner(ansi_quotes: bool, backslash: bool) -> re.Pattern[str]:
    double = _quoted('"', backslash)
    identifier = rf"`(?:[^`]|``)*`|{double}" if ansi_quotes else r"`(?:[^`]|``)*`"
    variable = rf"@@?(?:[\w$.]+|{_quoted('`', False)}|{_quoted(chr(39), backslash)}|{double})?"
    return re.compile(
        rf"(?P<skip>\s+|{COMMENT}|/\*!\d{{0,6}}|\*/)"
        rf"|(?P<string>{_DIGITS}|_[a-zA-Z][a-zA-Z0-9]*\s*(?:{_DIGITS}|{_WRITTEN_BYTES})|{_INTRODUCER}{_string(ansi_quotes, backslash)})"
        rf"|(?P<number>(?<![\w$]){_NUMBER})"
        rf"|(?P<word>[\w$]+)"
        rf"|(?P<quoted>{identifier})"
        rf"|(?P<variable>{variable})"
        rf"|(?P<operator>->>|<=>|<<|>>|->|<=|>=|<>|!=|:=|&&|\|\||.)",
        re.DOTALL,
    )


def _check_closed(sql: str, comment: str, offset: int) -> None:
    if comment.startswith("/*") and comment[2:3] != "!" and (len(comment) < 4 or not comment.endswith("*/")):
        raise syntax_error(sql, offset)


_KINDS = {kind.value: kind for kind in TokenKind}


def tokens(sql: str, ansi_quotes: bool = False, backslash: bool = True) -> Iterator[Token]:
    """The tokens of `sql`; a quote that is never closed comes out as an operator of its own."""
    short, taken = shortened(sql, backslash)
    if taken:
        places = Places(short, taken)
        for token in tokens(short, ansi_quotes, backslash):
            yield Token(token.kind, restored(token.text, taken), places[token.start], places[token.end], token.upper)
    else:
        yield from first_tokens(sql, ansi_quotes, backslash)


def first_tokens(sql: str, ansi_quotes: bool = False, backslash: bool = True) -> Iterator[Token]:
    """As `tokens`, for who stops early: what comes later is not looked at."""
    scanner = _scanner(ansi_quotes, backslash)
    end = len(sql)
    position = 0
    while position < end:
        match = scanner.match(sql, position)
        assert match is not None, "the last alternative takes any character"
        position = match.end()
        name = match.lastgroup
        if name == "skip":
            marker = match.group()
            _check_closed(sql, marker, match.start())
            if marker.startswith("/*!") and len(marker) >= 8 and int(marker[3:]) > SERVER_VERSION:
                closing = sql.find("*/", position)
                position = end if closing < 0 else closing + 2
            continue
        text = match.group()
        assert name is not None
        if name == "word":
            yield Token(TokenKind.WORD, text, match.start(), position, text.upper())
        else:
            yield Token(_KINDS[name], text, match.start(), position)


_UNCOMMENT = re.compile(
    rf"(?P<keep>{_quoted(chr(39), True)}|{_quoted(chr(34), True)}|`[^`]*`)|(?P<drop>{COMMENT}|/\*!\d{{0,6}}|\*/)", re.DOTALL
)
_UNCOMMENT_PLAIN = re.compile(
    rf"(?P<keep>{_quoted(chr(39), False)}|{_quoted(chr(34), False)}|`[^`]*`)|(?P<drop>{COMMENT}|/\*!\d{{0,6}}|\*/)", re.DOTALL
)


def without_comments(sql: str, backslash: bool = True) -> str:
    """`sql` with comments turned into a blank and versioned comments opened up."""
    sql, taken = shortened(sql, backslash)
    if taken:
        return restored(without_comments(sql, backslash), taken)
    pieces: list[str] = []
    pattern = _UNCOMMENT if backslash else _UNCOMMENT_PLAIN
    position = start = 0
    while (match := pattern.search(sql, position)) is not None:
        position = match.end()
        marker = match["drop"]
        if marker is None:
            continue
        _check_closed(sql, marker, match.start())
        pieces += (sql[start : match.start()], " ")
        if marker.startswith("/*!") and len(marker) >= 8 and int(marker[3:]) > SERVER_VERSION:
            closing = sql.find("*/", position)
            position = len(sql) if closing < 0 else closing + 2
        start = position
    pieces.append(sql[start:])
    return "".join(pieces)


_SPLIT = {
    backslash: re.compile(
        rf"{_quoted(chr(39), backslash)}|{_quoted(chr(34), backslash)}|`[^`]*`|{COMMENT}|(?P<end>;)", re.DOTALL
    )
    for backslash in (True, False)
}


def split_statements(sql: str, backslash: bool = True) -> list[str]:
    """The statements of a `;`-separated text, blank ones left out."""
    if ";" not in sql:
        return [sql] if sql.strip() else []
    sql, taken = shortened(sql, backslash)
    found: list[str] = []
    start = 0
    for match in _SPLIT[backslash].finditer(sql):
        if match["end"] is not None:
            found.append(sql[start : match.start()])
            start = match.end()
    found.append(sql[start:])
    return [restored(each.strip(), taken) for each in found if next(first_tokens(each), None) is not None]


def leading_words(sql: str, count: int = 1) -> tuple[str, ...]:
    """The first words in upper case, past comments and opening parentheses: what kind it is."""
    found: list[str] = []
    for token in first_tokens(sql):
        if token.kind is TokenKind.WORD:
            found.append(token.upper)
            if len(found) == count:
                break
        elif found or token.text != "(":
            break
    return tuple(found)


# --- the values of literals -----------------------------------------------------------------

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ONE_STRING = {
    True: re.compile(rf"{_quoted(chr(39), True)}|{_quoted(chr(34), True)}", re.DOTALL),
    False: re.compile(rf"{_quoted(chr(39), False)}|{_quoted(chr(34), False)}", re.DOTALL),
}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_OR_DOUBLED = {quote: re.compile(rf"\\(.)|{quote}({quote})", re.DOTALL) for quote in "'\""}


def _unescape(match: re.Match[str]) -> str:
    return match[2] or _ESCAPES.get(match[1], match[1])


def string_value(text: str, backslash: bool = True) -> str:
    """The value of a quoted string, or of several side by side."""
    if len(text) >= LONG:
        return "".join([
            string_value(f"{one[0]}{part}{one[0]}", backslash)
            for one in several_strings(text, backslash)
            for part in windows(one[1:-1], one[0], backslash)
        ])  # fmt: skip
    quote = text[0]
    body = text[1:-1]
    if quote not in body:
        if not backslash or "\\" not in body:
            return body
        return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), body)
    parts: list[str] = []
    for match in _ONE_STRING[backslash].finditer(text):
        one = match.group()
        quote = one[0]
        part = one[1:-1]
        if backslash:
            part = _ESCAPED_OR_DOUBLED[quote].sub(_unescape, part)
        else:
            part = part.replace(quote * 2, quote)
        parts.append(part)
    return "".join(parts)


class Digits(bytes):
    """What was written as 0x…, x'…', 0b… or b'…': bytes, and a number where one is wanted."""

    __slots__ = ()


def literal_values(texts: Sequence[str], backslash: bool = True) -> list[Value]:
    """As `literal_value`, of many."""
    if texts and max(map(len, texts)) < 19:
        together = "".join(texts)
        if together.isdigit() and together.isascii():
            return list(map(int, texts))
    return [literal_value(each, backslash) for each in texts]


def literal_value(text: str, backslash: bool = True) -> Value:
    """The value of a literal as `literal_splitter` finds it; also NULL and signed numbers.

    A string that holds bytes which are no UTF-8 is returned as those bytes.
    """
    first = text[0]
    if first == "'" or first == '"':
        value = string_value(text, backslash)
        return value if value.isascii() or not has_surrogates(value) else value.encode("utf-8", "surrogateescape")
    if text.isdigit():
        if len(text) < 20 or (len(text) == 20 and text <= "18446744073709551615"):
            return int(text)
        return written_decimal(text)
    if first == "_":
        return _introduced(text, backslash)
    lowered = text[:2].lower()
    if lowered == "0x" or lowered == "x'":
        digits = text[2:] if lowered == "0x" else text[2:-1]
        return Digits(bytes_of_digits(digits, 4))
    if lowered == "0b" or lowered == "b'":
        bits = text[2:] if lowered == "0b" else text[2:-1]
        return Digits(bytes_of_digits(bits, 1))
    if lowered == "n'":
        return string_value(text[1:], backslash)
    if text.upper() == "NULL":
        return None
    if "e" in text or "E" in text:
        return written_double(text)
    if "." in text:
        return written_decimal(text)
    signed = int(text)
    return signed if signed >= -0x8000_0000_0000_0000 else written_decimal(text)


def written_double(text: str) -> float:
    found = float(text)
    if isinf(found):
        raise InvalidStatement(Condition.ILLEGAL_VALUE, "double", text)
    return found


def introduced_value(value: str | bytes, charset: str, client_codec: str = "utf-8") -> str | bytes:
    """The bytes that a client sent, or wrote as digits, as a text of a character set; 0xD0B1 is the text of those bytes."""
    sent = value if isinstance(value, bytes) else value.encode(client_codec, "surrogateescape")
    if charset == "binary":
        return sent
    chosen = CHARSETS.get("utf8mb3" if charset == "utf8" else charset)
    if chosen is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, charset)
    missing = -len(sent) % chosen.bytes_min
    try:
        return (bytes(missing) + sent).decode(chosen.codec)
    except UnicodeDecodeError as error:
        raise InvalidStatement(Condition.INVALID_STRING, chosen.name, sent[error.start :][:6].hex().upper()) from None


_CHARSET = re.compile(r"_([a-zA-Z][a-zA-Z0-9]*)\s*")


def _introduced(text: str, backslash: bool) -> Value:
    """`_charset'…'`: bytes for _binary, else text as that character set's bytes spell it."""
    charset = _CHARSET.match(text)
    assert charset is not None
    value = literal_value(text[charset.end() :], backslash)
    assert isinstance(value, str | bytes)
    return introduced_value(value, charset[1].lower())


def quoted(name: str) -> str:
    """A name as it can stand anywhere in a statement."""
    return "`" + name.replace("`", "``") + "`"
