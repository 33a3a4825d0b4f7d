r"""The text of LOAD DATA as rows of fields.

A file comes in pieces; `feed` takes them and gives the rows that are complete, `finish` the rest.
A field is None for NULL: `\N`, or the word NULL where fields may be enclosed or nothing escapes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dataflow.errors import Unsupported

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}

Fields = list[str | None]


@dataclass(frozen=True, slots=True)
class Format:
    field_end: str = "\t"
    enclosure: str = ""
    escape: str = "\\"
    line_start: str = ""
    line_end: str = "\n"
    lines_skipped: int = 0


class FieldReader:
    def __init__(self, format: Format, codec: str) -> None:
        if not format.field_end or not format.line_end:
            raise Unsupported("LOAD DATA of rows with a fixed size")
        if format.escape == format.enclosure:  # what is doubled stands for itself, and nothing else is escaped
            format = replace(format, escape="")
        self._format = format
        self._decoder = codecs.getincrementaldecoder(codec)("surrogateescape" if codec == "utf-8" else "replace")
        self._field = _field_pattern(format)
        self._escaped = re.compile(re.escape(format.escape) + "(.)", re.DOTALL) if format.escape else None
        self._words_are_null = bool(format.enclosure) or not format.escape
        self._to_skip = format.lines_skipped
        self._text = ""

    def feed(self, data: bytes) -> Iterator[Fields]:
        self._text += self._decoder.decode(data)
        return self._rows()

    def finish(self) -> Iterator[Fields]:
        self._text += self._decoder.decode(b"", final=True)
        if self._text and not self._text.endswith(self._format.line_end):
            self._text += self._format.line_end
        yield from self._rows()
        # An enclosure that is never closed: what is left is one field.
        if rest := self._text.removesuffix(self._format.line_end):
            self._text = ""
            yield [self._unescaped(rest.removeprefix(self._format.enclosure))]

    def _rows(self) -> Iterator[Fields]:
        text, position = self._text, 0
        format, match_field = self._format, self._field.match
        while self._to_skip:
            end = text.find(format.line_end, position)
            if end < 0:
                break
            position = end + len(format.line_end)
            self._to_skip -= 1
        while not self._to_skip:
            at = position
            if format.line_start:
                found = text.find(format.line_start, at)
                if found < 0:
                    break
                at = found + len(format.line_start)
            fields: Fields = []
            while (match := match_field(text, at)) is not None:
                fields.append(self._value(match))
                at = match.end()
                if match["end"] == format.line_end:
                    break
            else:
                break  # the row goes on in what comes next
            position = at
            yield fields
        self._text = text[position:]

    def _value(self, match: re.Match[str]) -> str | None:
        plain = match["plain"]
        if plain is None:
            enclosed, quote = match["enclosed"], self._format.enclosure
            return self._unescaped(enclosed.replace(quote * 2, quote) if quote * 2 in enclosed else enclosed)
        if plain == "NULL" and self._words_are_null:
            return None
        escape = self._format.escape
        if not escape or escape not in plain:
            return plain
        return None if plain == escape + "N" else self._unescaped(plain)

    def _unescaped(self, text: str) -> str:
        if self._escaped is None or self._format.escape not in text:
            return text
        return self._escaped.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def _field_pattern(format: Format) -> re.Pattern[str]:
    """One field and what ends it; nothing matches while the end has not come."""
    end = f"(?:{re.escape(format.line_end)}|{re.escape(format.field_end)})"
    if format.field_end.startswith(format.line_end):
        end = f"(?:{re.escape(format.field_end)}|{re.escape(format.line_end)})"
    escape = re.escape(format.escape)
    escaped = f"|{escape}." if escape else ""
    firsts = re.escape(format.line_end[0] + format.field_end[0])
    # Atomic groups, as Python before 3.11.5 repeats groups possessively with mistakes (gh-106052).
    plain = f"(?P<plain>(?>(?:[^{escape}{firsts}]+{escaped}|(?!{end})[{firsts}])*))"
    pattern = plain
    if format.enclosure:
        quote = re.escape(format.enclosure)
        enclosed = f"(?>(?:[^{quote}{escape}]+{escaped}|{quote}{quote}|{quote}(?!{end}))*)"
        pattern = f"(?:{quote}(?P<enclosed>{enclosed}){quote}(?={end})|(?!{quote}){plain})"
    else:
        pattern += "(?P<enclosed>(?!))?"
    return re.compile(f"{pattern}(?P<end>{end})", re.DOTALL)
