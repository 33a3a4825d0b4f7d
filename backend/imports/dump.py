"""mysqldump files as a source: their statements, one after the other, on one connection.

The rows of INSERT and REPLACE are read from their text and sent by column, as any others; all other statements are run as they are. The place is
the number of the statement and of its rows that are done. A dump that goes on is read from its beginning, and of what was done before
only SET and USE are run again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BLOCK_BYTES = 1 << 20
_STATEMENT = re.compile(
    rb"(?>(?:[^'\"`;#/\-]+|'(?>(?:[^'\\]+|\\.)*)'|\"(?>(?:[^\"\\]+|\\.)*)\"|`[^`]*`|/\*.*?\*/|--(?=[ \t\r\n])[^\n]*\n|\#[^\n]*\n|[\-](?!-[ \t\r\n])|/(?!\*))*);",
    re.DOTALL,
)
_COMMENTS = re.compile(rb"(?:\s+|--(?=[ \t\r\n])[^\n]*(?:\n|$)|\#[^\n]*(?:\n|$)|/\*(?![!M]).*?\*/)*", re.DOTALL)
_DELIMITER = re.compile(rb"\s*DELIMITER[ \t]+(\S+)[^\n]*\n", re.IGNORECASE)
_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_INSERT = re.compile(
    rf"(INSERT|REPLACE)\s+(IGNORE\s+)?INTO\s+(?:{_NAME}\s*\.\s*)?{_NAME}\s*(?:\(([^()]*)\))?\s*VALUES?\s*(?=\()", re.IGNORECASE
)
_VALUE = re.compile(
    r"\s*(?:(NULL)|([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)(?![\w'])|(_binary\s+)?'((?>(?:[^'\\]+|\\.|'')*))'|(?:0x|x')([0-9a-fA-F]*)'?|(_[a-z0-9]+)\s+'((?>(?:[^'\\]+|\\.|'')*))')\s*([,)])",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
SESSION = re.compile(r"(?:/\*[!M]+\d*\s*)?(?:SET|USE)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class InsertedRows:
    verb: str
    database: str | None
    table: str
    columns: tuple[str, ...]
    rows: list[list[str | bytes | None]]


def statements(stream: Any) -> Iterator[str]:
    """The statements of a script, without comments between them and without what ends them."""
    text, delimiter, ended = b"", b";", False
    while True:
        at = _COMMENTS.match(text)
        assert at is not None
        start = at.end()
        changed = _DELIMITER.match(text, start)
        if changed is not None:
            delimiter = changed[1]
            text = text[changed.end() :]
            continue
        end, after = _end(text, start, delimiter)
        if end >= 0 and text[start : start + 9].upper() != b"DELIMITER":
            yield text[start:end].decode("utf-8", "surrogateescape")
            text = text[after:]
            continue
        if ended:
            if text[start:].strip():
                yield text[start:].decode("utf-8", "surrogateescape")
            return
        # Longer reads for longer statements, so that none is looked at too often.
        block = stream.read(max(BLOCK_BYTES, len(text)))
        ended = not block
        text += block or b"\n"


def _end(text: bytes, start: int, delimiter: bytes) -> tuple[int, int]:
    """Where the statement ends, and where what follows it begins; -1 if that is not known yet."""
    if delimiter != b";":  # bodies of routines; nothing of theirs is read here
        end = text.find(delimiter, start)
        return end, end + len(delimiter)
    found = _STATEMENT.match(text, start)
    return (-1, -1) if found is None else (found.end() - 1, found.end())


def inserted(statement: str) -> InsertedRows | None:
    """The rows of an INSERT or REPLACE of plain values; None if it is anything else."""
    head = _INSERT.match(statement)
    if head is None:
        return None
    verb = head[1].upper() + (" IGNORE" if head[2] else "")
    names = tuple(each.strip().strip("`").replace("``", "`") for each in head[7].split(",")) if head[7] else ()
    rows: list[list[str | bytes | None]] = []
    at, match_value = head.end(), _VALUE.match
    while True:
        if statement[at : at + 1] != "(":
            return None
        row: list[str | bytes | None] = []
        at += 1
        while True:
            value = match_value(statement, at)
            if value is None:
                return None
            null, number, binary, quoted, digits, _, introduced, end = value.groups()
            at = value.end()
            if null is not None:
                row.append(None)
            elif number is not None:
                row.append(number)
            elif digits is not None:
                row.append(bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))
            else:
                row.append(_string(quoted if quoted is not None else introduced, binary is not None))
            if end == ")":
                break
        rows.append(row)
        separator = _BETWEEN.match(statement, at)
        assert separator is not None
        at = separator.end()
        if not separator[1]:
            break
    if statement[at:].strip():
        return None
    return InsertedRows(verb, _named(head[3], head[4]), _named(head[5], head[6]) or "", names, rows)


_BETWEEN = re.compile(r"\s*(,?)\s*")


def _named(quoted: str | None, plain: str | None) -> str | None:
    return quoted.replace("``", "`") if quoted is not None else plain


def _string(text: str, is_binary: bool) -> str | bytes:
    if "\\" in text or "''" in text:
        text = _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]) if match[1] else "'", text)
    if is_binary or not text.isascii():
        data = text.encode("utf-8", "surrogateescape")
        try:
            return data if is_binary else data.decode()
        except UnicodeDecodeError:
            return data
    return text
