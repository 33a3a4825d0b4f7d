"""Text statements as a template and its literal values, without parsing: the hot front door.

`TemplateReader.read` splits a text at its literals with one regular expression. The text between
them, the *skeleton*, is looked up: seen before, it is known which literals are parameters and
which have to stay (see `literals`). Only a new skeleton is looked at token by token.

Invariant: which literals stay depends on the skeleton alone, and those that stay are part of
the template's text; so equal templates mean equal statements up to parameter values.

- Lists `IN (1, 2, 3)` are padded with their last value to a power of two, so that lists of
  different lengths share templates.
- `INSERT … VALUES (…), (…), …` with rows of one shape becomes the template of one row, and the
  values of all rows one after the other (`Template.batch` tells where they begin).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from controller.sql.settings import Settings
from controller.sql.text.lexer import (
    INTRODUCERS,
    Token,
    TokenKind,
    leading_words,
    literal_splitter,
    literal_value,
    literal_values,
    split_literals,
    string_value,
    tokens,
    without_comments,
)
from controller.sql.text.literals import has_own_collation, parameters_of
from controller.sql.text.number_runs import is_plain, number_rows
from controller.sql.text.padding import padded, padded_length, padded_lists
from controller.sql.text.parse import several, syntax_error
from controller.sql.text.reading import PART_LENGTH, Reading, Template, read_parts
from dataflow.values.types import Value

TEMPLATED = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"})
"""First words of the statements whose literals become parameters; others are left as they are."""

MARK = "\0"
"""Stands for a literal in a skeleton."""

SKELETONS_LENGTH_MAX = 16 << 20
"""All skeletons remembered have at most so many characters; beyond that, all are forgotten."""
TEMPLATES_MAX = 1000
"""Of one skeleton, which differ in the literals that stay."""
RUN_LENGTH_MIN = 256
"""In shorter texts it does not pay to look for rows of numbers."""
LONG_LIST_MIN = 32
"""IN lists of so many literals are one mark that knows their number; see `controller.sql.text.parse`."""


@dataclass(slots=True)
class _Skeleton:
    """What is known of a skeleton.

    `kept` literals stay in the text, `parameters` are the others (None: all of them), `lists`
    are (first parameter, length, padded length) of IN lists, and `templates` has the template
    for each combination of kept texts. `foldable`: all rows may share the first one's template.
    """

    kept: tuple[int, ...]
    parameters: tuple[int, ...] | None
    lists: tuple[tuple[int, int, int], ...]
    foldable: bool = True
    templates: dict[tuple[str, ...], Template] = field(default_factory=dict)


_ROW = rf"\((?:[^()]|\([^(){MARK}]*\))*\)"
# Atomic groups, as Python before 3.11.5 repeats groups possessively with mistakes (gh-106052).
_ROWS = re.compile(rf"\bVALUES?\s*({_ROW})(?>(\s*,\s*\1)*)(?!\s*,)", re.IGNORECASE)


_VALUES = re.compile(r"[^'\"(]*(?:\([^'\"()]*\)\s*)?\bVALUES?\s*(?=\()", re.IGNORECASE)
"""What comes before the rows, at most one list of columns."""
_LONG_LISTS = re.compile(rf"\bIN\s*\(\s*({MARK}(?>(?:\s*,\s*{MARK}){{{LONG_LIST_MIN - 1},}}))\s*\)", re.IGNORECASE)


class TemplateReader:
    """Reads statements in one quoting mode; `reader` has one for each."""

    def __init__(
        self, ansi_quotes: bool = False, backslash: bool = True, length_max: int = SKELETONS_LENGTH_MAX
    ) -> None:
        self._ansi_quotes = ansi_quotes
        self._backslash = backslash
        # Indexed by inserting + 2 * introduced. In VALUES lists NULL and a sign belong to the
        # literal, so that all rows have one shape.
        self._splitters = [
            literal_splitter(ansi_quotes, backslash, introduced, inserting)
            for introduced in (False, True)
            for inserting in (False, True)
        ]
        self._skeletons: dict[str, _Skeleton] = {}
        self._runs: dict[str, Template] = {}
        self._length = 0
        self._length_max = length_max

    def read(self, sql: str, fold: bool = True) -> Reading:
        """Without `fold`, the rows of an INSERT all stay in the template."""
        if "/*" in sql or "--" in sql or "#" in sql:
            sql = without_comments(sql, self._backslash).strip()
        inserting = sql[:1] in "iIrR" and sql[:6].upper() in ("INSERT", "REPLAC")
        if not inserting or not fold:
            return self._read(sql, inserting, fold)
        head = _VALUES.match(sql) if len(sql) > 2 * PART_LENGTH else None
        return (head and read_parts(sql, head, self._read_insert)) or self._read_insert(sql)

    def _read_insert(self, sql: str) -> Reading:
        run = self._read_run(sql) if len(sql) >= RUN_LENGTH_MIN else None
        return run or self._read(sql, True, True)

    def _read_run(self, sql: str) -> Reading | None:
        """Rows that are nothing but numbers, up to the end: after the first time, all that is read is these."""
        values = _VALUES.match(sql) if sql.isascii() else None
        if values is None:
            return None
        rows = number_rows(sql[values.end() :].encode())
        if rows is None:
            return None
        numbers, width = rows[0].tolist(), rows[1]
        template = self._runs.get(values[0])
        if template is None:
            found = self._read(sql, True, True)
            template = found.template
            if template.batch != (0, width) or found.values != numbers or not is_plain(values[0].encode()):
                return found
            if len(self._runs) >= TEMPLATES_MAX:
                self._runs.clear()
            self._runs[values[0]] = template
        return Reading(template, numbers, True) if template.batch == (0, width) else None

    def _read(self, sql: str, inserting: bool, fold: bool) -> Reading:
        introduced = any(each in sql for each in INTRODUCERS)
        pieces = split_literals(self._splitters[inserting + 2 * introduced], sql, self._backslash)
        literals = pieces[1::2]
        if MARK in sql:
            self._refuse_mark(pieces)
        skeleton = MARK.join(pieces[::2])
        own = [index for index, literal in enumerate(literals) if has_own_collation(literal)] if introduced else []
        if inserting and fold and not own:
            rows = _ROWS.search(skeleton)
            if rows is not None and (width := rows[1].count(MARK)):
                folded = self._read_rows(skeleton, literals, rows, width)
                if folded is not None:
                    return folded
        if len(literals) >= LONG_LIST_MIN and not own:
            listed = self._read_lists(skeleton, literals)
            if listed is not None:
                return listed
        apart = f"\t{own}" if own else ""  # 'a' may be a parameter where _latin1'a' is not
        known = self._skeletons.get(apart + skeleton) or self._learn(skeleton, literals, None, apart)
        template = known.templates.get(tuple([literals[index] for index in known.kept]))
        if template is None:
            template = self._template(known, skeleton, literals)
        if known.parameters is not None:
            literals = [literals[index] for index in known.parameters]
        values = literal_values(literals, self._backslash)
        return Reading(template, padded(values, known.lists) if known.lists else values)

    def _refuse_mark(self, pieces: list[str]) -> None:
        """A zero byte is an error anywhere but in a literal, or at the end, where some clients send one."""
        pieces[-1] = pieces[-1].removesuffix(MARK)
        for index in range(0, len(pieces), 2):
            if MARK in pieces[index]:
                before = "".join([*pieces[:index], pieces[index].partition(MARK)[0]])
                raise syntax_error(before, len(before))

    def _read_rows(self, skeleton: str, literals: list[str], rows: re.Match[str], width: int) -> Reading | None:
        """Fold the rows of VALUES into one, if nothing that has to stay is inside a row."""
        start = skeleton.count(MARK, 0, rows.start(1))
        end = start + skeleton.count(MARK, rows.start(1), rows.end())
        skeleton = skeleton[: rows.end(1)] + skeleton[rows.end() :]
        one_row = literals[: start + width] + literals[end:]
        key = "\n" + skeleton  # rows are never padded lists, so this is learnt apart
        known = self._skeletons.get(key) or self._learn(skeleton, one_row, (start, width), "\n")
        if not known.foldable:
            return None
        template = known.templates.get(tuple([one_row[index] for index in known.kept]))
        if template is None:
            template = self._template(known, skeleton, one_row, (start, width))
        if known.kept:
            extra = end - start - width
            kept = {index if index < start else index + extra for index in known.kept}
            literals = [literal for index, literal in enumerate(literals) if index not in kept]
        return Reading(template, literal_values(literals, self._backslash))

    def _read_lists(self, skeleton: str, literals: list[str]) -> Reading | None:
        """A statement with long IN lists: learnt as if each had one literal."""
        lists: dict[int, tuple[int, int]] = {}
        pieces: list[str] = []
        few: list[str] = []
        position = taken = 0
        for match in _LONG_LISTS.finditer(skeleton):
            before = skeleton.count(MARK, position, match.start(1))
            few += literals[taken : taken + before]
            taken += before
            count = match[1].count(MARK)
            lists[len(few)] = (taken, count)
            few.append(literals[taken])
            taken += count
            pieces += (skeleton[position : match.start(1)], MARK)
            position = match.end(1)
        if not lists:
            return None
        few += literals[taken:]
        short = "".join(pieces) + skeleton[position:]
        known = self._skeletons.get("\r" + short) or self._learn(short, few, None, "\r")
        if not lists.keys().isdisjoint(known.kept):
            return None
        lengths = {index: padded_length(count) for index, (_, count) in lists.items()}
        name = (*(few[index] for index in known.kept), *map(str, lengths.values()))
        template = known.templates.get(name)
        if template is None:
            template = self._template(known, short, few, lengths=lengths)
        values: list[Value | list[Value]] = []
        for index, literal in enumerate(few):
            if index in lists:
                first, count = lists[index]
                several = literal_values(literals[first : first + count], self._backslash)
                values.append(several + several[-1:] * (lengths[index] - count))
            elif index not in known.kept:
                values.append(literal_value(literal, self._backslash))
        flat: list[Value] = []
        for value in padded(values, known.lists):
            if isinstance(value, list):
                flat += value
            else:
                flat.append(value)
        return Reading(template, flat)

    def _learn(
        self, skeleton: str, literals: Sequence[str], batch: tuple[int, int] | None, apart: str = ""
    ) -> _Skeleton:
        """Look at the tokens once, and remember what they say about the literals."""
        found, positions = self._positions(skeleton, literals)
        free: set[int] = set()
        if leading_words(skeleton)[:1] and leading_words(skeleton)[0] in TEMPLATED:
            free = parameters_of(found, [position for position in positions if position is not None])
        kept = tuple(index for index, position in enumerate(positions) if position not in free)
        parameters = tuple(index for index, position in enumerate(positions) if position in free) if kept else None
        lists: tuple[tuple[int, int, int], ...] = ()
        foldable = True
        if batch is None:
            numbers = [position for position in positions if position in free]
            lists = tuple(padded_lists(found, {position: number for number, position in enumerate(numbers) if position is not None}))
        else:
            foldable = not any(batch[0] <= index < batch[0] + batch[1] for index in kept)
        known = _Skeleton(kept, parameters, lists, foldable)
        self._length += len(skeleton) + 500  # and what comes with it
        if self._length > self._length_max:
            self._skeletons.clear()
            self._length = len(skeleton)
        self._skeletons[apart + skeleton] = known
        return known

    def _positions(self, skeleton: str, literals: Sequence[str]) -> tuple[list[Token], list[int | None]]:
        """The tokens of the whole text, and which of them is each literal (None: no token is)."""
        texts = skeleton.split(MARK)
        starts: dict[int, int] = {}
        pieces = [texts[0]]
        length = len(texts[0])
        for index, literal in enumerate(literals):
            starts[length] = index
            pieces += (literal, texts[index + 1])
            length += len(literal) + len(texts[index + 1])
        found: list[Token] = []
        positions: list[int | None] = [None] * len(literals)
        for token in tokens("".join(pieces), self._ansi_quotes, self._backslash):
            literal_index = starts.get(token.start)
            if literal_index is not None and token.kind is TokenKind.OPERATOR:
                # A signed number is two tokens; let it be one.
                literal = literals[literal_index]
                token = Token(TokenKind.NUMBER, literal, token.start, token.start + len(literal))
            elif found and token.start < found[-1].end:
                continue
            if literal_index is not None and token.end - token.start == len(literals[literal_index]):
                positions[literal_index] = len(found)
            found.append(token)
        return found, positions

    def _template(
        self,
        known: _Skeleton,
        skeleton: str,
        literals: Sequence[str],
        batch: tuple[int, int] | None = None,
        lengths: Mapping[int, int] | None = None,
    ) -> Template:
        texts = skeleton.split(MARK)
        if self._ansi_quotes:
            texts = [_ANSI_IDENTIFIER.sub(_backquoted, text) for text in texts]
        kept = set(known.kept)
        padding = {first + length - 1: padded - length for first, length, padded in known.lists}
        pieces = [texts[0].lstrip()]
        number = 0
        lengths = lengths or {}
        for index, literal in enumerate(literals):
            if index in kept:
                pieces.append(canonical_literal(literal, self._backslash))
            elif index in lengths:
                pieces.append(several(lengths[index]))
                number += 1
            else:
                pieces.append("?" + ", ?" * padding.get(number, 0))
                number += 1
            pieces.append(texts[index + 1])
        text = "".join(pieces).rstrip("; \t\r\n")
        verb = next(iter(leading_words(text)), "")
        plain = False
        if batch is not None:
            rows = (batch[0], batch[0] + batch[1])
            first = batch[0] - sum(1 for index in known.kept if index < batch[0])
            batch = (first, batch[1])
            plain = all(_ends_value(texts[index]) and _begins_value(texts[index + 1]) for index in range(*rows))
        count = number + sum(padding.values()) + sum(lengths.values()) - len(lengths)
        template = Template(text, verb, count, batch, plain)
        if len(known.templates) >= TEMPLATES_MAX:
            known.templates.clear()
        known.templates[(*[literals[index] for index in known.kept], *map(str, lengths.values()))] = template
        return template


def _ends_value(text: str) -> bool:
    """Whether a new value begins after `text`."""
    return text.rstrip()[-1:] in ("(", ",")


def _begins_value(text: str) -> bool:
    """Whether the value before `text` is complete."""
    return text.lstrip()[:1] in (")", ",")


def canonical_literal(literal: str, backslash: bool) -> str:
    """A literal as the default SQL mode writes it."""
    if (backslash and literal[0] != "_") or literal[-1] not in "'\"" or literal.split()[-1][:2].lower() in ("x'", "b'"):
        return literal
    quote = min(at for at in (literal.find("'"), literal.find('"')) if at >= 0)
    value = string_value(literal[quote:], backslash)
    return literal[:quote] + "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


_ANSI_IDENTIFIER = re.compile(r'"(?:[^"]|"")*"')


def _backquoted(match: re.Match[str]) -> str:
    return "`" + match.group()[1:-1].replace('""', '"').replace("`", "``") + "`"


def canonical_text(sql: str, settings: Settings) -> str:
    """A statement with all its literals, as the default quoting modes write it, no comments."""
    if settings.backslash_escapes and not settings.ansi_quotes:
        return without_comments(sql).strip("; \t\r\n")
    pieces: list[str] = []
    position = 0
    for token in tokens(sql, settings.ansi_quotes, settings.backslash_escapes):
        pieces.append(" " if token.start > position else "")
        if token.kind is TokenKind.QUOTED:
            pieces.append(_ANSI_IDENTIFIER.sub(_backquoted, token.text))
        elif token.kind is TokenKind.STRING:
            pieces.append(canonical_literal(token.text, settings.backslash_escapes))
        else:
            pieces.append(token.text)
        position = token.end
    return "".join(pieces).strip("; ")


@cache
def reader(ansi_quotes: bool = False, backslash: bool = True) -> TemplateReader:
    return TemplateReader(ansi_quotes, backslash)
