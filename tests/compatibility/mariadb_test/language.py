"""mysqltest's language, read into commands.

A file is text up to a delimiter, lines that begin with `--` or `#`, and blocks in braces. Only the
form is known here; `script.py` says what a command does. A command that begins with none of the
known words is a statement for the server.

Files have bytes of any character set: they are read as UTF-8 with surrogates for all else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WORDS = re.compile(
    r"""append_file | assert | break | cat_file | change_user | character_set | chmod | connect | connection | continue |
    copy_file | dec | delimiter | die | diff_files | dirty_close | disconnect | echo | end_timer | error | eval | evalp |
    exec | execw | exit | file_exists | horizontal_results | if | inc | let | list_files | list_files_append_file |
    list_files_write_file | lowercase_result | mkdir | move_file | output | perl | ping | query | query_attributes |
    query_horizontal | query_vertical | real_sleep | reap | remove_file | remove_files_wildcard | replace_column |
    replace_numeric_round | replace_regex | replace_result | require | reset_connection | result_format | rmdir | send |
    send_eval | send_quit | send_shutdown | shutdown_server | skip | sleep | sorted_result | source | start_timer | system
    | vertical_results | wait_for_slave_to_stop | while | write_file | write_line | sync_with_master |
    sync_slave_with_master | save_master_pos | optimizer_trace | enable_\w+ | disable_\w+""",
    re.VERBOSE,
)
UNTIL_MARK = frozenset({"perl", "write_file", "append_file"})
_FIRST_WORD = re.compile(r"\s*([A-Za-z_]+)")
_DELIMITER = re.compile(r"\s*delimiter\s+", re.IGNORECASE)
_OPENS_BLOCK = re.compile(r"\s*(if|while)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Command:
    """`word` is "" for a statement; `body` is what a block has, or the lines of a file."""

    word: str
    text: str
    line: int
    body: tuple[Command, ...] = ()
    lines: str = ""


@dataclass(slots=True)
class Reader:
    """The commands of one file, in order. A broken end of file ends them."""

    text: str
    delimiter: str = ";"
    position: int = 0
    lines_before: list[int] = field(default_factory=list)

    def commands(self, nested: bool = False) -> Iterator[Command]:
        while True:
            self._skip_space()
            if self.position >= len(self.text):
                return
            line = self.text.count("\n", 0, self.position) + 1
            if self.text.startswith("}", self.position):
                self.position += 1
                if nested:
                    return
                continue
            if self.text[self.position] == "#":
                self._rest_of_line()
                continue
            if self.text.startswith("--", self.position):
                text = self._rest_of_line()[2:].strip()
                if text.endswith("{") and _OPENS_BLOCK.match(text):
                    text = text[:-1]
                    yield self._block(text, line)
                elif (command := self._directive(text, line)) is not None:
                    yield command
                continue
            text, opens = self._until_delimiter()
            if opens:
                yield self._block(text, line)
            elif _DELIMITER.match(text):
                self.delimiter = _DELIMITER.sub("", text).strip() or ";"
            elif text.strip():
                yield self._plain(text.strip(), line)

    def _block(self, text: str, line: int) -> Command:
        self._skip_space()
        if self.text.startswith("{", self.position):
            self.position += 1
        word = text.split("(")[0].strip().lower()
        condition = text[text.index("(") + 1 : text.rindex(")")] if "(" in text and ")" in text else "0"
        return Command(word, condition.strip(), line, tuple(self.commands(nested=True)))

    def _directive(self, text: str, line: int) -> Command | None:
        """A line that began with `--`; None if it is a comment or was done here."""
        word = _word(text)
        if not word:
            return None
        rest = text[len(word) :].strip()
        if word == "delimiter":
            self.delimiter = rest
            return None
        if _OPENS_BLOCK.match(text):
            return self._block(text, line)
        return Command(word, rest.removesuffix(";").rstrip(), line, lines=self._marked(word, rest))

    def _plain(self, text: str, line: int) -> Command:
        word = _word(text)
        if not word:
            return Command("", text, line)
        rest = text[len(word) :].strip()
        return Command(word, rest, line, lines=self._marked(word, rest))

    def _marked(self, word: str, rest: str) -> str:
        """The lines up to a mark, EOF unless another is given, for the commands that have some."""
        if word not in UNTIL_MARK:
            return ""
        parts = rest.removesuffix(";").split()
        index = 0 if word == "perl" else 1
        mark = parts[index] if len(parts) > index else "EOF"
        start = self.position
        if self.text[start : start + 1] == "\n":
            start += 1
        found = re.compile(rf"^{re.escape(mark)}\s*$", re.MULTILINE).search(self.text, start)
        if found is None:
            self.position = len(self.text)
            return self.text[start:]
        self.position = found.end()
        return self.text[start : found.start()]

    def _skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def _rest_of_line(self) -> str:
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        text = self.text[self.position : end]
        self.position = end + 1
        return text

    def _until_delimiter(self) -> tuple[str, bool]:
        """The text of a command, and whether a block follows it."""
        text, start, quote = self.text, self.position, ""
        opens_block = bool(_OPENS_BLOCK.match(text, start))
        at = start
        while at < len(text):
            character = text[at]
            if quote:
                if character == "\\" and quote != "`":
                    at += 1
                elif character == quote:
                    quote = ""
            elif text.startswith(self.delimiter, at):
                self.position = at + len(self.delimiter)
                return text[start:at], False
            elif opens_block and character == "{":
                self.position = at
                return text[start:at], True
            elif character in "'\"`":
                quote = character
            at += 1
        self.position = len(text)
        return text[start:], False


def _word(text: str) -> str:
    """The command that `text` begins with, "" if it is a statement."""
    found = _FIRST_WORD.match(text)
    word = found[1].lower() if found else ""
    return word if WORDS.fullmatch(word) else ""


def read(path: Path) -> list[Command]:
    text = path.read_bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    return list(Reader(text).commands())
